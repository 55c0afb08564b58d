"""The Lua scripts of working memory. One script is one operation, so every operation is atomic.

A namespace consists of three Redis keys with one hash tag, so that every script runs on Redis Cluster:
`expiry` (zset: normalised key -> when it expires, in ms), `meta` (hash: normalised key -> version, key as
first written, details as JSON; one line each) and `values` (hash). The time is that of the Redis server, for
writing and for reading. The version of an entry is the time when it was stored, in microseconds, and always
higher than that of the entry which it overwrites. All three keys expire with the last entry, so that a
namespace that is never read again leaves nothing behind.

Scripts are sent as text (EVAL), not by digest. The server caches them either way, and after a restart a
pipeline of digests would fail with NOSCRIPT.
"""

_SERVER_TIME = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function digits(number) return string.format('%.0f', number) end
"""

# Must follow _SERVER_TIME. KEYS: expiry, meta, values.
_NAMESPACE = """
local expiry, meta, values = KEYS[1], KEYS[2], KEYS[3]
local function drop(field)
  redis.call('ZREM', expiry, field)
  redis.call('HDEL', meta, field)
  redis.call('HDEL', values, field)
end
local function expire_with_last_entry()
  local latest = redis.call('ZRANGE', expiry, -1, -1, 'WITHSCORES')
  if latest[2] then
    for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, digits(latest[2])) end
  end
end
"""

# ARGV: normalised key, key, value, time to live in ms, limit of live entries, details as JSON.
# Returns {version, expires_at, key as first written}, or nil if the limit allows no new key.
PUT = f"""{_SERVER_TIME}{_NAMESPACE}
local field, key, value, ttl, limit, details = unpack(ARGV)
for _, expired in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', digits(now))) do drop(expired) end
local old = redis.call('HGET', meta, field)
if old then
  key = string.match(old, '^[^\\n]*\\n([^\\n]*)')
elseif redis.call('ZCARD', expiry) >= tonumber(limit) then
  return false
end
local old_version = tonumber(string.match(old or '0', '^%d+'))
local version = digits(math.max(time[1] * 1000000 + time[2], old_version + 1))
local expires_at = now + ttl
redis.call('HSET', values, field, value)
redis.call('HSET', meta, field, version .. '\\n' .. key .. '\\n' .. details)
redis.call('ZADD', expiry, digits(expires_at), field)
expire_with_last_entry()
return {{version, digits(expires_at), key}}
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

# ARGV: normalised key. Returns whether a live entry was deleted, 1 or 0.
DELETE = f"""{_SERVER_TIME}{_NAMESPACE}
local expires_at = tonumber(redis.call('ZSCORE', expiry, ARGV[1]) or 0)
drop(ARGV[1])
expire_with_last_entry()
return expires_at > now and 1 or 0
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
