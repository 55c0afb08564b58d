"""The Lua scripts of the desk: one script is one operation, so one operation is atomic.

A namespace is three Redis keys of one hash tag, so that every script runs on Redis Cluster:
`expiry` (zset: folded key -> when it expires, in ms), `meta` (hash: folded key -> stored_at in ms,
key as first written, JSON of the rest; one line each) and `values` (hash). The clock is Redis's
own, for writing and for reading. All three carry the latest expiry as their own, so that a desk
that nobody looks at again leaves nothing behind.

Scripts are sent as text (EVAL), not by digest: the server caches them either way, and a pipeline
after a restart has no NOSCRIPT to recover from.
"""

_CLOCK = """
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local function ms(number) return string.format('%.0f', number) end
"""

# Must follow _CLOCK. KEYS are expiry, meta, values.
_DESK = """
local expiry, meta, values = KEYS[1], KEYS[2], KEYS[3]
local function drop(field)
  redis.call('ZREM', expiry, field)
  redis.call('HDEL', meta, field)
  redis.call('HDEL', values, field)
end
local function keep_until_latest()
  local latest = redis.call('ZRANGE', expiry, -1, -1, 'WITHSCORES')
  if latest[2] then
    for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, ms(latest[2])) end
  end
end
"""

# ARGV: folded key, key, value, time to live in ms, limit of live entries, JSON of the rest.
# -> {stored_at, expires_at, key as first written}, or nil if the limit refuses a new key.
PUT = f"""{_CLOCK}{_DESK}
local field, key, value, life, limit, rest = unpack(ARGV)
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', expiry, '-inf', ms(now))) do drop(gone) end
local old = redis.call('HGET', meta, field)
if old then
  key = string.match(old, '^[^\\n]*\\n([^\\n]*)')
elseif redis.call('ZCARD', expiry) >= tonumber(limit) then
  return false
end
local ends = now + life
redis.call('HSET', values, field, value)
redis.call('HSET', meta, field, ms(now) .. '\\n' .. key .. '\\n' .. rest)
redis.call('ZADD', expiry, ms(ends), field)
keep_until_latest()
return {{ms(now), ms(ends), key}}
"""

# KEYS: expiry, meta, and `values` if values are wanted. ARGV: folded keys; none for all.
# -> for each live entry {ms left, expires_at, meta, value?}, ordered as asked, or by expiry.
READ = f"""{_CLOCK}
local fields = ARGV
if #fields == 0 then
  fields = redis.call('ZRANGEBYSCORE', KEYS[1], '(' .. ms(now), '+inf')
end
local live = {{}}
for _, field in ipairs(fields) do
  local ends = tonumber(redis.call('ZSCORE', KEYS[1], field) or 0)
  if ends > now then
    local entry, whole = {{ms(ends - now), ms(ends)}}, true
    for hash = 2, #KEYS do
      entry[hash + 1] = redis.call('HGET', KEYS[hash], field)
      whole = whole and entry[hash + 1]
    end
    if whole then live[#live + 1] = entry end  -- a Redis that evicts may have taken one of the keys
  end
end
return live
"""

# ARGV: folded key -> whether a live entry was deleted, 1 or 0.
DELETE = f"""{_CLOCK}{_DESK}
local ends = tonumber(redis.call('ZSCORE', expiry, ARGV[1]) or 0)
drop(ARGV[1])
keep_until_latest()
return ends > now and 1 or 0
"""

# ARGV: folded prefix; by whole segments -> how many live entries were deleted.
CLEAR = f"""{_CLOCK}{_DESK}
local prefix, count = ARGV[1] .. '/', 0
for _, field in ipairs(redis.call('ZRANGE', expiry, 0, -1)) do
  if string.sub(field .. '/', 1, #prefix) == prefix then
    if tonumber(redis.call('ZSCORE', expiry, field)) > now then count = count + 1 end
    drop(field)
  end
end
keep_until_latest()
return count
"""

# The tenant's namespaces, in a slot of their own. KEYS: names (zset, all scores 0: ordered by
# name), until (zset: name -> latest expiry in ms). ARGV: namespace, milliseconds that it may live.
# Only ever extended: a hint that is too long costs a read, one too short hides an entry.
REGISTER_NAMESPACE = f"""{_CLOCK}
local names, deadlines = KEYS[1], KEYS[2]
for _, gone in ipairs(redis.call('ZRANGEBYSCORE', deadlines, '-inf', ms(now), 'LIMIT', 0, 100)) do
  redis.call('ZREM', names, gone)
  redis.call('ZREM', deadlines, gone)
end
redis.call('ZADD', names, 0, ARGV[1])
redis.call('ZADD', deadlines, 'GT', ms(now + ARGV[2]), ARGV[1])
local latest = redis.call('ZRANGE', deadlines, -1, -1, 'WITHSCORES')
for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, ms(latest[2])) end
"""

# KEYS as above. ARGV: first segment of the names, empty for all -> names that may hold live entries.
LIST_NAMESPACES = f"""{_CLOCK}
local from, to = '-', '+'
if ARGV[1] ~= '' then
  -- '0' follows '/', so this range is the names beneath the segment and nothing else.
  from, to = '[' .. ARGV[1] .. '/', '(' .. ARGV[1] .. '0'
end
local found = redis.call('ZRANGEBYLEX', KEYS[1], from, to)
if ARGV[1] ~= '' then found[#found + 1] = ARGV[1] end
local live = {{}}
for _, name in ipairs(found) do
  if tonumber(redis.call('ZSCORE', KEYS[2], name) or 0) > now then live[#live + 1] = name end
end
return live
"""
