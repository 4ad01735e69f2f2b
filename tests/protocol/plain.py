"""Plain locks as scripts. The comments name the rules of docs/src/protocol.md."""

from shared import COUNTER

VERSIONS = """
local function version_of(value) return value and string.match(value, '^%d+ (%d+ %d+)$') end
local function number_of(version) return version and tonumber(string.match(version, '^%d+')) or -1 end
-- B4: only a claim version with a larger number replaces one. Of a value that is false there is none.
local function write_claim(key, owner, count, version, before)
  local kept = version_of(before)
  if number_of(kept) < number_of(version ~= '' and version or nil) then kept = version end
  redis.call('HSET', key, owner, kept and count .. ' ' .. kept or count)
end
"""

# KEYS: claim, counter, queue. ARGV: owner, count, lease with margin, retention, floor, slack, carry, version, replaces, after.
ACQUIRE = COUNTER + VERSIONS + """
local claim, counter, queue = KEYS[1], KEYS[2], KEYS[3]
local owner, count, kept, retention, floor, slack, carry, version, replaces, after = unpack(ARGV)
local left = redis.call('PTTL', claim)
local held = redis.call('HMGET', claim, 'mode', owner)                       -- A5: raises WRONGTYPE
if held[1] then return {'other mode', held[1]} end                           -- A4
local mine, replaced = held[2], false
if not mine then
  if redis.call('EXISTS', queue) == 1 then return {'other mode', 'fair'} end -- A6
  if left ~= -2 then
    local fields = redis.call('HLEN', claim) == 1 and redis.call('HGETALL', claim)
    local theirs = fields and version_of(fields[2])
    local shown = theirs and fields[1] .. ' ' .. theirs
    replaced = version ~= '' and shown and shown == replaces                 -- B3
    if not replaced then                                                     -- A3, B2
      return {'refused', left, version ~= '' and shown or false}
    end
  end
end
local stored, wrong = read_counter(counter)
if wrong then return redis.error_reply(wrong) end
local token = choose(stored, mine, floor, slack, carry)
if ARGV.trusts and after ~= '' and carry == '' and not mine and stored and tonumber(after) <= stored then token = stored + 1 end  -- T9
if replaced then redis.call('DEL', claim) end
write_counter(counter, token, retention)                                     -- T4
if mine then
  extend(claim, kept)
  write_claim(claim, owner, count, version, mine)
  return {'already yours', text_of(token)}                                   -- A2
end
write_claim(claim, owner, count, version, false)                                -- A1, B1
local failed = expire(claim, kept)
if failed then return failed end
return {'anew', text_of(token)}
"""

# KEYS: claim, counter. ARGV: owner, count, lease with margin, retention, token, version.
RENEW = COUNTER + VERSIONS + """
local claim, counter = KEYS[1], KEYS[2]
local owner, count, kept, retention, token, version = unpack(ARGV)
if redis.call('TYPE', claim).ok ~= 'hash' then return false end              -- E2
local held = redis.call('HMGET', claim, 'mode', owner)
if held[1] or not held[2] then return false end
local kind = redis.call('TYPE', counter).ok
if kind ~= 'none' and kind ~= 'string' then return false end
local stored, wrong = read_counter(counter)
if wrong then return false end
local value = math.max(stored or 0, tonumber(token))                         -- E1
extend(claim, kept)
write_claim(claim, owner, count, version, held[2])
carry_counter(counter, stored, value, retention, kept)                       -- T7
return text_of(value)
"""

# KEYS: claim. ARGV: owner, count, channel.
RELEASE = """
local held = redis.call('HMGET', KEYS[1], 'mode', ARGV[1])                   -- L4: raises WRONGTYPE
if held[1] or not held[2] then return 'not yours' end                        -- L3
if ARGV[2] ~= '0' then                                                       -- L2, B1: the claim version stays
  redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. (string.match(held[2], ' .*') or ''))
  return 'kept'
end
redis.call('DEL', KEYS[1])                                                   -- L1
redis.pcall('PUBLISH', ARGV[3], '0')
return 'freed'
"""
