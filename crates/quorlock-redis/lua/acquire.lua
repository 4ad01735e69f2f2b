-- Records a claim, if the name is free, the claim is the owner's already, or its beat is the one that may be replaced.
--
-- KEYS[1]  the claim: a hash {owner: count} with a TTL, as Redisson keeps it; with a margin there is a field 'beat':
--          "<owner> <number of its request> <lease in ms>"
-- KEYS[2]  the token counter of the name: a string
-- KEYS[3]  who waits for the fair lock of the name: a list
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on
-- ARGV[3]  lease, and margin, in ms
-- ARGV[4]  how long an unused token counter is kept in ms; 0 = for ever
-- ARGV[5]  with ARGV[6]: the floor of a new token; without: the token of the hold, to be carried along
-- ARGV[6]  how far the floor may be from this server's clock in ms; empty = none
-- ARGV[7]  with a margin: the beat that this request gives the claim; empty or left out without
-- ARGV[8]  the beat, as it was shown, whose claim may be replaced; empty = none
--
-- Replies  integer          granted anew: the token
--          {2, token}       granted, the claim was there before
--          {0, left}        refused: what is left of another's claim in ms, -1 if it has no TTL
--          {0, left, beat}  the same with a margin; nil if the claim has no beat
--          string           a lock of this other mode stands there
-- Errors   WRONGTYPE        one of the keys is something else
--
-- It must be atomic: between looking and writing, another owner could be granted the name, or be handed the same
-- token, and a holder that has renewed since its beat was shown must keep its claim. Every check comes before the first
-- write, so that an error says "nothing was done". Numbers are written with '%.0f' because tostring() keeps 14 digits
-- only. The usual case is kept cheap: its reply is no table, two keys are looked for with one call, and adding 0 makes a
-- number of text for less than tonumber().
local call = redis.call
local claim, counter, owner, count, lease = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local mine = ARGV[7] ~= '' and ARGV[7]

local left, yours, beat, replaces = -2, false, false, false
local found = call('EXISTS', claim, KEYS[3])
if found ~= 0 then
  left = call('PTTL', claim)
  if left ~= -2 then
    local held = call('HMGET', claim, 'mode', owner, 'beat')
    if held[1] then return held[1] end
    found, yours, beat = found - 1, held[2], held[3]
  end
  if not yours then
    -- A waiter of the fair lock would be passed.
    if found ~= 0 then return 'fair' end
    if not mine then return {0, left} end
    -- A claim that its beat does not name is never replaced.
    replaces = beat == ARGV[8] and call('HMGET', claim, string.match(beat, '^%S*'))[1]
    if not replaces then return {0, left, beat} end
    beat = false
  end
end

local stored = call('GET', counter)
if stored then
  stored = counted(stored)
  if not stored then return redis.error_reply(NO_COUNTER) end
end

local asked = ARGV[5] + 0
local token = next_token(stored, asked, ARGV[6], yours)

if replaces then call('DEL', claim) end
-- A re-entry extends first: a server that has reached its memory limit refuses only the first write of a script, and
-- it lets PEXPIRE pass. A claim without TTL keeps none.
if yours and left ~= -1 and left < tonumber(lease) then call('PEXPIRE', claim, lease) end
local text = token == asked and ARGV[5] or string.format('%.0f', token)
store_token(call, counter, text, ARGV[4])

-- The number of a beat only grows.
local number = beat and mine and tonumber(string.match(beat, ' (%d+) %d+$'))
if mine and not (number and tonumber(string.match(mine, ' (%d+) ')) <= number) then
  call('HSET', claim, owner, count, 'beat', mine)
elseif yours ~= count then
  call('HSET', claim, owner, count)
end
if yours then return {2, token} end

-- A claim without TTL would outlive its owner: should PEXPIRE be forbidden to this user, the claim must go.
local expiry = redis.pcall('PEXPIRE', claim, lease)
if type(expiry) == 'table' then
  call('DEL', claim)
  return expiry
end
return token
