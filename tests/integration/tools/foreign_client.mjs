// A client of another make, the TypeScript SDK of MCP: list the tools, call two, and print what came as JSON.
// Arguments: the address of /mcp, the key, and the user to act for.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [address, key, user] = process.argv.slice(2);
const headers = { Authorization: `Bearer ${key}`, "Loci-User": user };
const client = new Client({ name: "foreign", version: "1" });
await client.connect(new StreamableHTTPClientTransport(new URL(address), { requestInit: { headers } }));
const { tools } = await client.listTools();
const added = await client.callTool({ name: "memory_add", arguments: { content: "Ada likes trains." } });
const found = await client.callTool({ name: "memory_search", arguments: { query: "trains" } });
const missing = await client.callTool({ name: "memory_forget", arguments: { id: "none" } });
console.log(JSON.stringify({ tools, instructions: client.getInstructions(), added, found, missing }));
await client.close();
