-- Records a writer's claim of a read-write lock, if no owner reads or writes, or the claim is the owner's already.
--
-- KEYS[1]  the claims: a hash {mode: read or write, reader: count, writer..':write': count} with a TTL, as Redisson
--          keeps it
-- KEYS[2]  the token counter of the name: a string
-- ARGV[1]  the owner's field, which ends with ':write'
-- ARGV[2]  hold count from now on
-- ARGV[3]  lease in ms
-- ARGV[4]  how long an unused token counter is kept in ms; 0 = for ever
-- ARGV[5]  what the keys of the readers' own leases begin with; then comes reader..':rwlock_timeout:'..n
-- ARGV[6]  with ARGV[7]: the floor of a new token; without: the token of the hold, to be carried along
-- ARGV[7]  how far the floor may be from this server's clock in ms; empty = none
--
-- Replies  integer     granted anew: the token
--          {2, token}  granted, the claim was there before
--          {0, left}   refused: what is left of the others' claims in ms, of readers' that of the longest lease; -1 if
--                      they have no TTL
--          string      a lock of this other mode stands there
-- Errors   WRONGTYPE   one of the keys is something else
--
-- It must be atomic: between looking and writing, others could be granted the name. A re-entry never adds to what is
-- left of the lease. Every loop is bounded, whatever another program has written there, lest it hold up the server: a
-- reader of more than 1,000 holds, or of what is no whole number, is taken to live, and so is who comes after 10,000
-- keys that were looked for. Numbers are written with '%.0f' because tostring() keeps 14 digits only.
local call = redis.call
local claim, counter, field, count, lease = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]

local MOST_HOLDS, looks = 1000, 10000
local left = call('PTTL', claim)

-- What is left of the readers' leases in ms, but no more than of the whole; -2 if all have run out.
local function left_to_read()
  local most, cursor = -2, '0'
  repeat
    local found = call('HSCAN', claim, cursor)
    cursor = found[1]
    for i = 1, #found[2], 2 do
      local reader, text = found[2][i], found[2][i + 1]
      if reader ~= 'mode' then
        local holds = string.match(text, '^[1-9]%d*$') and #text <= 4 and tonumber(text)
        if not holds or MOST_HOLDS < holds then return left end
        for n = 1, holds do
          looks = looks - 1
          local own = call('PTTL', ARGV[5] .. reader .. ':rwlock_timeout:' .. n)
          if looks == 0 or own == -1 or own ~= -2 and left <= own and left ~= -1 then return left end
          if most < own then most = own end
        end
      end
    end
  until cursor == '0'
  return most
end

local yours = false
if left ~= -2 then
  local held = call('HMGET', claim, 'mode', field)
  if not held[1] then return 'plain' end
  if held[1] == 'write' then
    yours = held[2]
    if not yours then return {0, left} end
  elseif held[1] ~= 'read' then
    return held[1]
  else
    local reads = left_to_read()
    if reads ~= -2 then return {0, reads} end
  end
end

local stored = call('GET', counter)
if stored then
  stored = counted(stored)
  if not stored then return redis.error_reply(NO_COUNTER) end
end

local token = next_token(stored, tonumber(ARGV[6]), ARGV[7], yours)

-- A re-entry extends first: a server that has reached its memory limit refuses only the first write of a script, and
-- it lets PEXPIRE pass. A claim without TTL keeps none.
if yours and left ~= -1 and left < tonumber(lease) then call('PEXPIRE', claim, lease) end
-- What is left of dead readers.
if not yours and left ~= -2 then call('DEL', claim) end
store_token(call, counter, string.format('%.0f', token), ARGV[4])
if yours then
  if yours ~= count then call('HSET', claim, field, count) end
  return {2, token}
end
call('HSET', claim, 'mode', 'write', field, count)

-- A claim without TTL would outlive its owner: should PEXPIRE be forbidden to this user, the claim must go.
local expiry = redis.pcall('PEXPIRE', claim, lease)
if type(expiry) == 'table' then
  call('DEL', claim)
  return expiry
end
return token
