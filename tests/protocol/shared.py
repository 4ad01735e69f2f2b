"""Lua functions that several scripts begin with, and the names of keys. The comments name the rules of docs/src/protocol.md."""

MOST = 2**53 - 1
MARKER = "quorlock_marker"


def key(prefix, name):
    """K2: returns a key of a name."""
    return f"{prefix}:{name}" if "{" in name else f"{prefix}:{{{name}}}"


def channel(name):
    """K4: returns the channel of a name."""
    return key("redisson_lock__channel", name)


# Tokens. T5: a counter that is not a number is an error before anything is written.
COUNTER = """
local function read_counter(key)
  local text = redis.call('GET', key)
  if not text then return nil end
  local value = tonumber(text)
  if not value or 9007199254740992 <= value then return nil, 'WRONGTYPE the counter is no number below 2^53' end
  return value
end
local function text_of(number) return string.format('%.0f', number) end
local function write_counter(key, value, retention)
  if retention == '0' then redis.call('SET', key, text_of(value))
  else redis.call('SET', key, text_of(value), 'PX', retention) end
end
local function server_now()
  local time = redis.call('TIME')
  return time[1] * 1000 + math.floor(time[2] / 1000)
end
local function choose(stored, mine, floor, slack, carry)
  if carry ~= '' then return math.max(stored or 0, tonumber(carry)) end        -- T3
  if mine and stored then return stored end                                    -- T2
  local now, floor, slack = server_now(), tonumber(floor), tonumber(slack)     -- T1
  local token = math.max(now - slack, math.min(now + slack, floor))
  if stored and token <= stored then return stored + 1 end
  return token
end
-- A2: a TTL is never shortened, and a claim without one keeps none.
local function extend(key, kept)
  local left = redis.call('PTTL', key)
  if left >= 0 and left < tonumber(kept) then redis.call('PEXPIRE', key, kept) end
end
-- A1: a claim without a TTL would outlive its owner.
local function expire(claim, kept)
  local expiry = redis.pcall('PEXPIRE', claim, kept)
  if type(expiry) == 'table' then redis.call('DEL', claim) return expiry end
end
-- T7: 'kept' is the lease, with its margin.
local function carry_counter(key, stored, value, retention, kept)
  local keep = tonumber(retention)
  local part = math.floor(keep / 8)
  if value == stored and part >= tonumber(kept) and server_now() % part >= tonumber(kept) then return end
  local left = redis.call('PTTL', key)
  local lasts = keep == 0 and left == -1 or keep > 0 and keep <= 2 * left and 2 * tonumber(kept) <= keep
  if value ~= stored or not lasts then write_counter(key, value, retention) end
end
"""

# Surrounds the script of an acquire, whose arguments come after five others: the field of the owner before; floor, slack, carry
# and retention are repeated.
CONTINUE = """
local function acquire() %s end
local claim, counter = KEYS[1], KEYS[2]
local before, floor, slack, carry, retention = unpack(ARGV, 1, 5)
for _ = 1, 5 do table.remove(ARGV, 1) end
local owner, count = ARGV[1], ARGV[2]
local held, left = redis.call('HMGET', claim, 'mode', owner, before), redis.call('PTTL', claim)  -- A5: raises WRONGTYPE
local mode = string.find(before, ':write', 1, true) and 'write' or false
if held[1] == mode and held[2] then return acquire() end                     -- H2
local refused = {'refused', left == -2 and 0 or left}
if held[1] ~= mode or not held[3] then return refused end                    -- H3
local stored, wrong = read_counter(counter)
if wrong then return redis.error_reply(wrong) end
redis.call('HSET', claim, owner, count)                                      -- H1
redis.call('HDEL', claim, before)
write_counter(counter, choose(stored, false, floor, slack, carry), retention)
local done, reply = pcall(acquire)
if done and not reply.err then
  for _, field in ipairs(mode and redis.call('HKEYS', claim) or {}) do         -- H4
    if field ~= 'mode' and field ~= owner then redis.call('HDEL', claim, field) end
  end
  return {'anew', reply[2]}
end
redis.call('HSET', claim, before, held[3])
redis.call('HDEL', claim, owner)
return done and reply or redis.error_reply(type(reply) == 'table' and reply.err or reply)
"""
