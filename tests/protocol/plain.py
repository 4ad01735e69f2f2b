"""Plain locks as scripts. The comments name the rules of docs/src/protocol.md."""

from shared import COUNTER

BEATS = """
local function beat_number(beat) return beat and tonumber(string.match(beat, '^%S+ (%d+) %d+$')) or -1 end
-- B4: only a claim version with a larger number replaces one.
local function write_claim(key, owner, count, beat, before)
  redis.call('HSET', key, owner, count)
  if beat ~= '' and beat_number(before) < beat_number(beat) then redis.call('HSET', key, 'beat', beat) end
end
"""

# KEYS: claim, counter, queue. ARGV: owner, count, lease with margin, retention, floor, slack, carry, beat, replaces.
ACQUIRE = COUNTER + BEATS + """
local claim, counter, queue = KEYS[1], KEYS[2], KEYS[3]
local owner, count, kept, retention, floor, slack, carry, beat, replaces = unpack(ARGV)
local left = redis.call('PTTL', claim)
local held = redis.call('HMGET', claim, 'mode', owner, 'beat')               -- A5: raises WRONGTYPE
if held[1] then return {'other mode', held[1]} end                           -- A4
local mine, shown = held[2], held[3]
local replaced = false
if not mine then
  if redis.call('EXISTS', queue) == 1 then return {'other mode', 'fair'} end -- A6
  if left ~= -2 then
    if replaces ~= '' and shown == replaces then                             -- B3
      local holder = string.match(shown, '^%S+')
      replaced = redis.call('HEXISTS', claim, holder) == 1
    end
    if not replaced then                                                     -- A3, B2
      return {'refused', left, beat ~= '' and shown or false}
    end
  end
end
local stored, wrong = read_counter(counter)
if wrong then return redis.error_reply(wrong) end
local token = choose(stored, mine, floor, slack, carry)
if replaced then redis.call('DEL', claim) end
write_counter(counter, token, retention)                                     -- T4
if mine then
  extend(claim, kept)
  write_claim(claim, owner, count, beat, shown)
  return {'already yours', text_of(token)}                                   -- A2
end
write_claim(claim, owner, count, beat, false)                                -- A1, B1
local failed = expire(claim, kept)
if failed then return failed end
return {'anew', text_of(token)}
"""

# KEYS: claim, counter. ARGV: owner, count, lease with margin, retention, token, beat.
RENEW = COUNTER + BEATS + """
local claim, counter = KEYS[1], KEYS[2]
local owner, count, kept, retention, token, beat = unpack(ARGV)
if redis.call('TYPE', claim).ok ~= 'hash' then return false end              -- E2
local held = redis.call('HMGET', claim, 'mode', owner, 'beat')
if held[1] or not held[2] then return false end
local kind = redis.call('TYPE', counter).ok
if kind ~= 'none' and kind ~= 'string' then return false end
local stored, wrong = read_counter(counter)
if wrong then return false end
local value = math.max(stored or 0, tonumber(token))                         -- E1
extend(claim, kept)
write_claim(claim, owner, count, beat, held[3])
carry_counter(counter, stored, value, retention, kept)                       -- T7
return text_of(value)
"""

# KEYS: claim. ARGV: owner, count, channel.
RELEASE = """
local held = redis.call('HMGET', KEYS[1], 'mode', ARGV[1])                   -- L4: raises WRONGTYPE
if held[1] or not held[2] then return 'not yours' end                        -- L3
if ARGV[2] ~= '0' then redis.call('HSET', KEYS[1], ARGV[1], ARGV[2]) return 'kept' end
redis.call('DEL', KEYS[1])                                                   -- L1
redis.pcall('PUBLISH', ARGV[3], '0')
return 'freed'
"""
