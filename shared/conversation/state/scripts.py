"""The Lua scripts of `tmp`: one script is one operation, so one operation is atomic.

A store is six Redis keys of one hash tag, so that every script runs on Redis Cluster: `written`
(the number of the last write), `keys` (hash), `order` (zset: key -> write), `transcript` (list),
`labels` (hash: label -> version and what is listed, one line each) and `values` (hash). Numbers of
writes are made as in Postgres: microseconds of the server's clock, or one more than the last. Every
write gives all six the same end, so that a store is gone as a whole.

KEYS are always all six; ARGV[1] of what writes is the time to live in ms.
"""

# Numbers of 16 digits: Lua would write them with an exponent.
_NAMES = """
local written, keys, order, transcript, labels, values = unpack(KEYS)
local function whole(number) return string.format('%.0f', number) end
"""

_WRITE = f"""{_NAMES}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local number = math.max(now, tonumber(redis.call('GET', written) or 0) + 1)
local function done(answer)
  redis.call('SET', written, whole(number))
  local ends = whole(math.floor(now / 1000) + ARGV[1])
  for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, ends) end
  return answer
end
"""

# ARGV: ttl, key, value, how many keys stay -> the number of the write.
SET_KEY = f"""{_WRITE}
redis.call('HSET', keys, ARGV[2], ARGV[3])
redis.call('ZADD', order, whole(number), ARGV[2])
for _, gone in ipairs(redis.call('ZRANGE', order, 0, -1 - ARGV[4])) do
  redis.call('ZREM', order, gone)
  redis.call('HDEL', keys, gone)
end
return done(whole(number))
"""

# ARGV: key -> {value, write}, each nil where there is none.
GET_KEY = f"""{_NAMES}
return {{redis.call('HGET', keys, ARGV[1]), redis.call('ZSCORE', order, ARGV[1])}}
"""

# ARGV: ttl, key -> 1, or 0 where there is none; that is no write.
DELETE_KEY = f"""{_WRITE}
if redis.call('HDEL', keys, ARGV[2]) == 0 then return 0 end
redis.call('ZREM', order, ARGV[2])
return done(1)
"""

# ARGV: how many, after which write -> {key, value, write} by write.
LIST_KEYS = f"""{_NAMES}
local found = redis.call('ZRANGEBYSCORE', order, '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local listed = {{}}
for at = 1, #found, 2 do
  local value = redis.call('HGET', keys, found[at])
  -- A Redis that evicts may have taken one of the six.
  if value then listed[#listed + 1] = {{found[at], value, found[at + 1]}} end
end
return listed
"""

# ARGV: ttl, entry, how many entries stay -> the number of the write.
APPEND = f"""{_WRITE}
redis.call('RPUSH', transcript, whole(number) .. '\\n' .. ARGV[2])
redis.call('LTRIM', transcript, -ARGV[3], -1)
return done(whole(number))
"""

# ARGV: how many -> entries, oldest first.
TRANSCRIPT = f"""{_NAMES}
return redis.call('LRANGE', transcript, -ARGV[1], -1)
"""

# ARGV: label -> {version and listing, value}, each nil where there is none.
GET_COLLECTION = f"""{_NAMES}
return {{redis.call('HGET', labels, ARGV[1]), redis.call('HGET', values, ARGV[1])}}
"""

# Must follow _WRITE. ARGV[2] is the label, ARGV[3] the versions that may be there, as `,1,2,`, -1
# standing for any and 0 for none; empty: whatever is there.
_VERSION = """
local found = string.match(redis.call('HGET', labels, ARGV[2]) or '0', '^%d+')
local function expected(version) return string.find(ARGV[3], ',' .. version .. ',', 1, true) end
local stale = ARGV[3] ~= '' and not expected(found) and (found == '0' or not expected('-1'))
if stale then return {0, found} end
"""

# ARGV: ttl, label, expected, what is listed, value -> {1, its version} or {0, the version that is there}.
PUT_COLLECTION = f"""{_WRITE}{_VERSION}
redis.call('HSET', labels, ARGV[2], whole(number) .. '\\n' .. ARGV[4])
redis.call('HSET', values, ARGV[2], ARGV[5])
return done({{1, whole(number)}})
"""

# ARGV: ttl, label, expected -> {1, the version that was there, if any} or {0, the version that is there}.
REMOVE_COLLECTION = f"""{_WRITE}{_VERSION}
if found == '0' then return {{1, found}} end
redis.call('HDEL', labels, ARGV[2])
redis.call('HDEL', values, ARGV[2])
return done({{1, found}})
"""

# -> label, version and listing, in turn.
LIST_COLLECTIONS = f"""{_NAMES}
return redis.call('HGETALL', labels)
"""

# -> ms until the store is gone; negative if there is none.
EXPIRY = f"""{_NAMES}
return redis.call('PTTL', written)
"""

DROP = f"""{_NAMES}
return redis.call('UNLINK', unpack(KEYS))
"""
