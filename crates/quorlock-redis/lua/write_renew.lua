-- Extends the claims of writers that still have them; never makes one.
--
-- KEYS[2k+1]  the k-th claims: a hash {mode: write, writer..':write': count} with a TTL (k counts from 0)
-- KEYS[2k+2]  the token counter of its name: a string
-- ARGV[1]     how long an unused token counter is kept in ms; 0 = forever
-- ARGV[4k+2]  the owner's field, which ends with ':write'
-- ARGV[4k+3]  hold count from now on
-- ARGV[4k+4]  lease in ms
-- ARGV[4k+5]  token of the hold
--
-- Replies  an array with one integer for each claim, in order:
--          the token stored now  the owner had the claim, which is extended
--          -1                    it had none (another owner's, gone, or not a lock)
--
-- The script must be atomic: between a look and the extension, A's claim could expire, B be granted the name, and A
-- extend B's claim. The claims are independent of each other: an error with one of them does not prevent the renewal
-- of the others.
local call, now = redis.call, server_now()

local function renew(claim, counter, owner, count, lease, token)
  local held = look('HMGET', claim, 'mode', owner)
  if not held or held[1] ~= 'write' or not held[2] then return -1 end
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
  if stored ~= token or is_counter_due(ARGV[1], lease, now) then
    carry_token(call, counter, stored, token, ARGV[1], lease)
  end
  if held[2] ~= count then call('HSET', claim, owner, count) end
  return token
end

local replies = {}
for i = 1, #KEYS, 2 do
  local at = 2 * i
  replies[#replies + 1] = renew(KEYS[i], KEYS[i + 1], ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3])
end
return replies
