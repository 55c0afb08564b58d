"""The Lua scripts of working memory. One script is one operation, so every operation is atomic.

A namespace consists of four Redis keys with one hash tag, so that every script runs on Redis Cluster:
`expiry` (zset: normalised key -> when it expires, in ms), `meta` (hash: normalised key -> version, key as
first written, details as JSON; one line each), `values` (hash) and `requests` (zset: the ids of the last
requests that appended, by time). The time is that of the Redis server, for writing and for reading. The
version of an entry is the time when it was stored, in microseconds, and always higher than that of the entry
which it overwrites. So an entry that is deleted and written anew has no version that it ever had. All four
keys expire with the last entry, so that a namespace that is never read again leaves nothing behind.

A condition on the stored version is a list as `redis_versions` makes it. An expired entry has no version.

Scripts are sent as text (EVAL), not by digest. The server caches them either way, and after a restart a
pipeline of digests would fail with NOSCRIPT.
"""

from shared.infra.redis_versions import MEETS_CONDITION

TOO_LONG = "too long"

_SERVER_TIME = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function digits(number) return string.format('%.0f', number) end
"""

# Must follow _SERVER_TIME. KEYS: expiry, meta, values, requests.
_NAMESPACE = f"""{MEETS_CONDITION}
local expiry, meta, values, requests = unpack(KEYS)
local function drop(field)
  redis.call('ZREM', expiry, field)
  redis.call('HDEL', meta, field)
  redis.call('HDEL', values, field)
end
local function expire_with_last_entry()
  local latest = redis.call('ZRANGE', expiry, -1, -1, 'WITHSCORES')
  if not latest[2] then redis.call('UNLINK', unpack(KEYS)) return end
  for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, digits(latest[2])) end
end
local function version_of(entry) return string.match(entry or '0', '^%d+') end
local function version_after(entry)
  return digits(math.max(time[1] * 1000000 + time[2], tonumber(version_of(entry)) + 1))
end
"""

# ARGV: normalised key, key, value, time to live in ms, limit of live entries, details as JSON, condition.
# Returns {1, version, expires_at, key as first written}, {0, stored version} if the condition is not met, or
# nil if the limit allows no new key.
PUT = f"""{_SERVER_TIME}{_NAMESPACE}
local field, key, value, ttl, limit, details, condition = unpack(ARGV)
for _, expired in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', digits(now))) do drop(expired) end
local old = redis.call('HGET', meta, field)
if not meets_condition(version_of(old), condition) then return {{0, version_of(old)}} end
if old then
  key = string.match(old, '^[^\\n]*\\n([^\\n]*)')
elseif redis.call('ZCARD', expiry) >= tonumber(limit) then
  return false
end
local version = version_after(old)
local expires_at = now + ttl
redis.call('HSET', values, field, value)
redis.call('HSET', meta, field, version .. '\\n' .. key .. '\\n' .. details)
redis.call('ZADD', expiry, digits(expires_at), field)
expire_with_last_entry()
return {{1, version, digits(expires_at), key}}
"""

# ARGV: normalised key, text, limit of a value in bytes, characters above which a value is large, time to live
# in ms or '' to leave it, condition, id of the request or '', trust of the text, and all trusts, rising.
# Returns {1, ms left, expires_at, meta, value}, {0, stored version} if the condition is not met, TOO_LONG, or
# nil if there is no live entry. A request that has appended before changes nothing.
APPEND = f"""{_SERVER_TIME}{_NAMESPACE}
local field, text, limit, threshold, ttl, condition, request, trust = unpack(ARGV)
local expires_at = tonumber(redis.call('ZSCORE', expiry, field) or 0)
local old, value = redis.call('HGET', meta, field), redis.call('HGET', values, field)
if expires_at <= now or not old or not value then return false end
local function reply(entry)
  return {{1, digits(expires_at - now), digits(expires_at), entry, value}}
end
if request ~= '' and redis.call('ZSCORE', requests, request) then return reply(old) end
if not meets_condition(version_of(old), condition) then return {{0, version_of(old)}} end
if #value + #text > tonumber(limit) then return '{TOO_LONG}' end
value = value .. text
local _, continuation_bytes = string.gsub(value, '[\\128-\\191]', '')
local key, details = string.match(old, '^[^\\n]*\\n([^\\n]*)\\n(.*)$')
if #value - continuation_bytes > tonumber(threshold) then
  details = string.gsub(details, '"large":false}}$', '"large":true}}')  -- codec.pack writes it last
end
-- The whole is trusted as its least trusted part. Within a text of JSON, a quotation mark is escaped.
for rank = 9, #ARGV do
  if ARGV[rank] == trust then
    details = string.gsub(details, '"trust":"%a+"', '"trust":"' .. trust .. '"')
    break
  end
  if string.find(details, '"trust":"' .. ARGV[rank] .. '"', 1, true) then break end
end
local new = version_after(old) .. '\\n' .. key .. '\\n' .. details
redis.call('HSET', values, field, value)
redis.call('HSET', meta, field, new)
if ttl ~= '' then
  expires_at = now + ttl
  redis.call('ZADD', expiry, digits(expires_at), field)
end
if request ~= '' then
  redis.call('ZADD', requests, digits(now), request)
  redis.call('ZREMRANGEBYRANK', requests, 0, -1001)
end
expire_with_last_entry()
return reply(new)
"""

# KEYS: expiry, meta, and `values` to read values too. ARGV: normalised keys; none for all.
# Returns {ms left, expires_at, meta, value?} for each live entry, in the order of ARGV, or by expiry.
READ = f"""{_SERVER_TIME}
local fields = ARGV
if #fields == 0 then
  fields = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. digits(now), '+inf')
end
local live = {{}}
for _, field in ipairs(fields) do
  local expires_at = tonumber(redis.call('ZSCORE', KEYS[1], field) or 0)
  if expires_at > now then
    local entry, is_complete = {{digits(expires_at - now), digits(expires_at)}}, true
    for hash = 2, #KEYS do
      entry[hash + 1] = redis.call('HGET', KEYS[hash], field)
      is_complete = is_complete and entry[hash + 1]
    end
    if is_complete then live[#live + 1] = entry end  -- Redis may have evicted one of the keys
  end
end
return live
"""

# ARGV: normalised key, condition.
# Returns {1, version of the deleted live entry or 0}, or {0, stored version} if the condition is not met.
DELETE = f"""{_SERVER_TIME}{_NAMESPACE}
local field, condition = unpack(ARGV)
local is_live = tonumber(redis.call('ZSCORE', expiry, field) or 0) > now
local stored = is_live and version_of(redis.call('HGET', meta, field)) or '0'
if not meets_condition(stored, condition) then return {{0, stored}} end
drop(field)
expire_with_last_entry()
return {{1, stored}}
"""

# ARGV: normalised prefix, by whole segments. Returns how many live entries were deleted.
CLEAR = f"""{_SERVER_TIME}{_NAMESPACE}
local prefix, count = ARGV[1] .. '/', 0
for _, field in ipairs(redis.call('ZRANGE', expiry, 0, -1)) do
  if string.sub(field .. '/', 1, #prefix) == prefix then
    if tonumber(redis.call('ZSCORE', expiry, field)) > now then count = count + 1 end
    drop(field)
  end
end
expire_with_last_entry()
return count
"""

# The tenant's namespaces, in a slot of their own. KEYS: namespaces (zset, all scores 0: sorted by
# name), expiries (zset: name -> latest expiry in ms). ARGV: namespace, time to live in ms.
# An expiry is only ever extended: one that is too late costs a needless read, while one that is too early
# would hide an entry.
REGISTER_NAMESPACE = f"""{_SERVER_TIME}
local names, expiries = KEYS[1], KEYS[2]
for _, expired in ipairs(redis.call('ZRANGEBYSCORE', expiries, '-inf', digits(now), 'LIMIT', 0, 100)) do
  redis.call('ZREM', names, expired)
  redis.call('ZREM', expiries, expired)
end
redis.call('ZADD', names, 0, ARGV[1])
redis.call('ZADD', expiries, 'GT', digits(now + ARGV[2]), ARGV[1])
local latest = redis.call('ZRANGE', expiries, -1, -1, 'WITHSCORES')
for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, digits(latest[2])) end
"""

# KEYS as above. ARGV: first segment of the names, empty for all.
# Returns the namespaces that may have live entries.
LIST_NAMESPACES = f"""{_SERVER_TIME}
local from, to = '-', '+'
if ARGV[1] ~= '' then
  -- '0' follows '/', so this range is exactly the names below the segment.
  from, to = '[' .. ARGV[1] .. '/', '(' .. ARGV[1] .. '0'
end
local names = redis.call('ZRANGEBYLEX', KEYS[1], from, to)
if ARGV[1] ~= '' then names[#names + 1] = ARGV[1] end
local live = {{}}
for _, name in ipairs(names) do
  if tonumber(redis.call('ZSCORE', KEYS[2], name) or 0) > now then live[#live + 1] = name end
end
return live
"""
