-- Records a reader's claim of a read-write lock, unless another owner writes.
--
-- KEYS[1]  the claims: a hash {mode: read or write, reader: count, writer..':write': count} with a TTL, as Redisson
--          keeps it
-- KEYS[2]  the token counter of the name: a string
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on
-- ARGV[3]  lease in ms
-- ARGV[4]  prefix of the keys of the owner's lease; the n-th hold's key ends with n
-- ARGV[5]  field of the writer that does not exclude the owner; empty = none
--
-- Replies  integer     granted anew: the token that the last writer had, 0 if there is none
--          {2, token}  granted, the owner already had the claim
--          {0, left}   refused: remaining TTL of the writer's claim in ms, -1 if it has no TTL
--          string      refused: the key is a lock of this other mode
-- Errors   WRONGTYPE   one of the keys has another type
--
-- The script must be atomic: between a look and a write, a writer could be granted the name. Each hold has its own
-- key, whose TTL is its lease: with one TTL for all, live readers would keep the claims of dead ones. The TTL of the
-- hash is the largest of them.
local call = redis.call
local claim, owner, count, lease = KEYS[1], ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

-- No Quorlock client has more holds than this. If another program's count is larger, the rest of the keys is left to
-- expire.
local MOST_HOLDS = 1000
local left = call('PTTL', claim)
local before, text = 0, false
if left ~= -2 then
  local held = call('HMGET', claim, 'mode', owner, ARGV[5])
  if not held[1] then return 'plain' end
  if held[1] == 'write' then
    if not held[3] then return {0, left} end
  elseif held[1] ~= 'read' then
    return held[1]
  end
  text = held[2]
  if text and call('EXISTS', ARGV[4] .. '1') == 1 then
    before = string.match(text, '^[1-9]%d*$') and #text <= 4 and math.min(tonumber(text), MOST_HOLDS) or MOST_HOLDS
  end
end

local stored = call('GET', KEYS[2])
if stored then
  stored = counted(stored)
  if not stored then return redis.error_reply(NO_COUNTER) end
end

-- A re-entry extends the TTL first. A server at its memory limit refuses only the first write of a script, and it
-- allows PEXPIRE.
for i = 1, count do
  local own = call('PTTL', ARGV[4] .. i)
  if before == 0 or own == -2 then
    call('SET', ARGV[4] .. i, '1', 'PX', ARGV[3])
  elseif own ~= -1 and own < lease then
    call('PEXPIRE', ARGV[4] .. i, ARGV[3])
  end
end
for i = count + 1, before do call('DEL', ARGV[4] .. i) end

if left == -2 then
  call('HSET', claim, 'mode', 'read', owner, ARGV[2])
  -- A claim without TTL would outlive its owner. If this user may not use PEXPIRE, the claim is deleted again.
  local expiry = redis.pcall('PEXPIRE', claim, ARGV[3])
  if type(expiry) == 'table' then
    call('DEL', claim)
    return expiry
  end
else
  if text ~= ARGV[2] then call('HSET', claim, owner, ARGV[2]) end
  if left ~= -1 and left < lease then call('PEXPIRE', claim, ARGV[3]) end
end
if before == 0 then return stored or 0 end
return {2, stored or 0}
