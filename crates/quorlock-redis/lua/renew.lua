-- Extends claims of owners that still have them; never makes one.
--
-- KEYS[2k+1]  the k-th claim, as acquire.lua makes it (k counts from 0)
-- KEYS[2k+2]  the token counter of its name: a string
-- ARGV[1]     how long an unused token counter is kept in ms; 0 = forever
-- ARGV[5k+2]  owner
-- ARGV[5k+3]  hold count from now on
-- ARGV[5k+4]  lease, and margin, in ms
-- ARGV[5k+5]  token of the hold
-- ARGV[5k+6]  with a margin: the claim version that this request writes; empty without
--
-- Replies  an array with one integer for each claim, in order:
--          the token stored now  the owner had the claim, which is extended
--          -1                    it had none (another owner's, gone, or not a lock)
--
-- The script must be atomic: between a look and the extension, A's claim could expire, B be granted the name, and A
-- extend B's claim. The claims are independent of each other: an error with one of them does not prevent the renewal
-- of the others.
local call = redis.call

local function renew(claim, counter, owner, count, lease, token, mine)
  local held = look('HMGET', claim, 'mode', owner, 'beat')
  if not held or held[1] or not held[2] then return -1 end
  local stored = look('GET', counter)
  if stored == nil then return -1 end
  if stored then
    stored = counted(stored)
    if not stored then return -1 end
  end
  token = next_token(stored, tonumber(token), '')

  -- PEXPIRE comes first. A server at its memory limit refuses only the first write of a script, and it allows
  -- PEXPIRE: if another write came first, full memory would end every hold. A claim without TTL keeps none.
  local left = call('PTTL', claim)
  if left ~= -1 and left < tonumber(lease) then call('PEXPIRE', claim, lease) end
  carry_token(call, counter, stored, token, ARGV[1], lease)
  -- The number of a claim version only grows: a late copy of an older request does not undo what a newer one stated.
  local number = held[3] and tonumber(string.match(held[3], ' (%d+) %d+$'))
  if mine ~= '' and not (number and tonumber(string.match(mine, ' (%d+) ')) <= number) then
    call('HSET', claim, owner, count, 'beat', mine)
  elseif held[2] ~= count then
    call('HSET', claim, owner, count)
  end
  return token
end

local replies = {}
for k = 1, #KEYS / 2 do
  local at = 5 * k - 3
  local owner, count, lease, token, beat = unpack(ARGV, at, at + 4)
  replies[k] = renew(KEYS[2 * k - 1], KEYS[2 * k], owner, count, lease, token, beat)
end
return replies
