-- Records a claim if the name is free, the owner already has the claim, or the request may replace the claim version
-- there.
--
-- KEYS[1]  the claim: a hash {owner: count} with a TTL, as Redisson keeps it; with a margin the count is followed by the claim
--          version, "<count> <number of the owner's request> <lease in ms>"
-- KEYS[2]  the token counter of the name: a string
-- KEYS[3]  the queue of the fair lock of the name: a list of waiters
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on
-- ARGV[3]  lease, and margin, in ms
-- ARGV[4]  how long an unused token counter is kept in ms; 0 = forever
-- ARGV[5]  with ARGV[6]: the floor of a new token; without: the token that an existing hold carries along
-- ARGV[6]  how far the floor may be from this server's clock in ms; empty = none
-- ARGV[7]  with a margin: the claim version that this request writes, "<number> <lease in ms>"; empty or left out without
-- ARGV[8]  the claim version whose claim may be replaced, as it was shown; empty or left out = none
-- ARGV[9]  a token that the client has seen: with a counter of at least that, a new token is the next number; empty or left out = none.
--          It counts if ARGV.is_trusted is set: the server is the process that the client trusts
--
-- Replies  integer          granted anew: the token
--          {2, token}       granted, the owner already had the claim
--          {0, left}        refused: remaining TTL of the other owner's claim in ms, -1 if it has no TTL
--          {0, left, shown}  the same with a margin: "<owner> <claim version>"; nil if the claim has none
--          string           refused: the key is a lock of this other mode
-- Errors   WRONGTYPE        one of the keys has another type
--
-- The script must be atomic. Between a look and a write by A, B could be granted the name or handed the same token;
-- and a holder that has renewed since its claim version was shown to A would lose its claim. Every check precedes the
-- first write, so an error means that nothing was written. Numbers are formatted with '%.0f' because tostring() keeps
-- only 14 digits. The common case is kept cheap: its reply is not a table, one EXISTS checks two keys, and adding 0
-- converts a string to a number faster than tonumber().
local call = redis.call
local claim, counter, owner, count, lease = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]
local mine = ARGV[7] ~= '' and ARGV[7]

local left, yours, replaces = -2, false, false
local found = call('EXISTS', claim, KEYS[3])
if found ~= 0 then
  left = call('PTTL', claim)
  if left ~= -2 then
    local held = call('HMGET', claim, 'mode', owner)
    if held[1] then return held[1] end
    found, yours = found - 1, held[2]
  end
  if not yours then
    -- A plain lock does not overtake the waiters of the fair lock.
    if found ~= 0 then return 'fair' end
    if not mine then return {0, left} end
    local held = call('HLEN', claim) == 1 and call('HGETALL', claim)
    local version = held and string.match(held[2], '^%d+ (%d+ %d+)$')
    local shown = version and held[1] .. ' ' .. version
    replaces = shown and shown == ARGV[8]
    if not replaces then return {0, left, shown} end
  end
end

local stored = call('GET', counter)
if stored then
  stored = counted(stored)
  if not stored then return redis.error_reply(NO_COUNTER) end
end

local asked = ARGV[5] + 0
local after, token = ARGV.is_trusted and tonumber(ARGV[9]), nil
if after and stored and after <= stored and not yours and ARGV[6] ~= '' then
  token = stored + 1
else
  token = next_token(stored, asked, ARGV[6], yours)
end

if replaces then call('DEL', claim) end
-- A re-entry extends the TTL first. A server at its memory limit refuses only the first write of a script, and it
-- allows PEXPIRE: if HSET came first, the owner could not extend a claim that it still has. A claim without TTL keeps
-- none.
if yours and left ~= -1 and left < tonumber(lease) then call('PEXPIRE', claim, lease) end
local text = token == asked and ARGV[5] or string.format('%.0f', token)
store_token(call, counter, text, ARGV[4])

local value = with_count(yours or '', count, mine)
if value ~= yours then call('HSET', claim, owner, value) end
if yours then return {2, token} end

-- A claim without TTL would outlive its owner. If this user may not use PEXPIRE, the claim is deleted again.
local expiry = redis.pcall('PEXPIRE', claim, lease)
if type(expiry) == 'table' then
  call('DEL', claim)
  return expiry
end
return token
