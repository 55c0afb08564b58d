"""The Lua scripts of `tmp`: each operation is one script, which makes the operation atomic.

A state store consists of six Redis keys with one hash tag, so that every script runs on Redis
Cluster: `version` (of the last write), `keys` (hash), `order` (sorted set: key -> version),
`transcript` (list), `labels` (hash: label -> version and collection info, one line each) and
`values` (hash). Versions are assigned as in Postgres: the server's time in microseconds, or the
last version plus one if that is greater. Every write sets the same expiry on all six keys, so that
a state store expires as a whole.

KEYS are always all six keys. ARGV[1] of every script that writes is the time to live in ms. A condition on
the stored version is a list as `redis_versions` makes it; its script returns {0, stored version} if it is
not met.
"""

from shared.infra.redis_versions import MEETS_CONDITION

# Lua would write numbers of 16 digits with an exponent.
_NAMES = """
local last_version, keys, order, transcript, labels, values = unpack(KEYS)
local function whole(number) return string.format('%.0f', number) end
"""

_WRITE = f"""{_NAMES}
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local version = math.max(now, tonumber(redis.call('GET', last_version) or 0) + 1)
local function finish(result)
  redis.call('SET', last_version, whole(version))
  local expires_at = whole(math.floor(now / 1000) + ARGV[1])
  for _, key in ipairs(KEYS) do redis.call('PEXPIREAT', key, expires_at) end
  return result
end
"""

# Must follow _WRITE. ARGV[2] is the key, ARGV[3] the condition.
_CHECK_KEY_VERSION = f"""{MEETS_CONDITION}
local stored = whole(tonumber(redis.call('ZSCORE', order, ARGV[2]) or 0))
if not meets_condition(stored, ARGV[3]) then return {{0, stored}} end
"""

# ARGV: ttl, key, condition, value, maximum of keys -> {1, new version} or {0, stored version}.
SET_KEY = f"""{_WRITE}{_CHECK_KEY_VERSION}
redis.call('HSET', keys, ARGV[2], ARGV[4])
redis.call('ZADD', order, whole(version), ARGV[2])
for _, evicted in ipairs(redis.call('ZRANGE', order, 0, -1 - ARGV[5])) do
  redis.call('ZREM', order, evicted)
  redis.call('HDEL', keys, evicted)
end
return finish({{1, whole(version)}})
"""

# ARGV: key -> {value, version}, both nil if the key doesn't exist.
GET_KEY = f"""{_NAMES}
return {{redis.call('HGET', keys, ARGV[1]), redis.call('ZSCORE', order, ARGV[1])}}
"""

# ARGV: ttl, key, condition -> {1, deleted version or 0} or {0, stored version}. Deleting nothing is no write.
DELETE_KEY = f"""{_WRITE}{_CHECK_KEY_VERSION}
if redis.call('HDEL', keys, ARGV[2]) == 0 then return {{1, '0'}} end
redis.call('ZREM', order, ARGV[2])
return finish({{1, stored}})
"""

# ARGV: limit, version -> {key, value, version} of keys after that version, ordered by version.
LIST_KEYS = f"""{_NAMES}
local scored = redis.call('ZRANGEBYSCORE', order, '(' .. ARGV[2], '+inf', 'WITHSCORES', 'LIMIT', 0, ARGV[1])
local results = {{}}
for position = 1, #scored, 2 do
  local value = redis.call('HGET', keys, scored[position])
  -- Redis may have evicted one of the six keys if it is configured to.
  if value then results[#results + 1] = {{scored[position], value, scored[position + 1]}} end
end
return results
"""

# ARGV: ttl, entry, maximum of entries -> version.
APPEND = f"""{_WRITE}
redis.call('RPUSH', transcript, whole(version) .. '\\n' .. ARGV[2])
redis.call('LTRIM', transcript, -ARGV[3], -1)
return finish(whole(version))
"""

# ARGV: limit -> the last entries, oldest first.
TRANSCRIPT = f"""{_NAMES}
return redis.call('LRANGE', transcript, -ARGV[1], -1)
"""

# ARGV: label -> {version and info, value}, both nil if the collection doesn't exist.
GET_COLLECTION = f"""{_NAMES}
return {{redis.call('HGET', labels, ARGV[1]), redis.call('HGET', values, ARGV[1])}}
"""

# Must follow _WRITE. ARGV[2] is the label, ARGV[3] the condition.
_CHECK_COLLECTION_VERSION = f"""{MEETS_CONDITION}
local stored = string.match(redis.call('HGET', labels, ARGV[2]) or '0', '^%d+')
if not meets_condition(stored, ARGV[3]) then return {{0, stored}} end
"""

# ARGV: ttl, label, condition, info, value -> {1, new version} or {0, stored version}.
PUT_COLLECTION = f"""{_WRITE}{_CHECK_COLLECTION_VERSION}
redis.call('HSET', labels, ARGV[2], whole(version) .. '\\n' .. ARGV[4])
redis.call('HSET', values, ARGV[2], ARGV[5])
return finish({{1, whole(version)}})
"""

# ARGV: ttl, label, condition -> {1, removed version or 0} or {0, stored version}.
REMOVE_COLLECTION = f"""{_WRITE}{_CHECK_COLLECTION_VERSION}
if stored == '0' then return {{1, stored}} end
redis.call('HDEL', labels, ARGV[2])
redis.call('HDEL', values, ARGV[2])
return finish({{1, stored}})
"""

# -> label, version and info; label, version and info; and so on.
LIST_COLLECTIONS = f"""{_NAMES}
return redis.call('HGETALL', labels)
"""

# -> ms until the state store expires; negative if it doesn't exist.
EXPIRY = f"""{_NAMES}
return redis.call('PTTL', last_version)
"""

# -> number of the deleted Redis keys.
DROP = f"""{_NAMES}
return redis.call('UNLINK', unpack(KEYS))
"""
