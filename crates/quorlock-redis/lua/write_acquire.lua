-- Records a writer's claim of a read-write lock if no other owner reads or writes, or the owner already has the
-- claim.
--
-- KEYS[1]  the claims: a hash {mode: read or write, reader: count, writer..':write': count} with a TTL, as Redisson
--          keeps it
-- KEYS[2]  the token counter of the name: a string
-- ARGV[1]  the owner's field, which ends with ':write'
-- ARGV[2]  hold count from now on
-- ARGV[3]  lease in ms
-- ARGV[4]  how long an unused token counter is kept in ms; 0 = forever
-- ARGV[5]  prefix of the keys of the readers' leases; the rest is reader..':rwlock_timeout:'..n
-- ARGV[6]  with ARGV[7]: the floor of a new token; without: the token that an existing hold carries along
-- ARGV[7]  how far the floor may be from this server's clock in ms; empty = none
--
-- Replies  integer     granted anew: the token
--          {2, token}  granted, the owner already had the claim
--          {0, left}   refused: remaining TTL of the other claims in ms; of readers, that of the longest lease; -1 if they
--                      have no TTL
--          string      refused: the key is a lock of this other mode
-- Errors   WRONGTYPE   one of the keys has another type
--
-- The script must be atomic: between a look and a write, others could be granted the name. A re-entry never adds to
-- what is left of the lease. Every loop is bounded, or a large count of another program would block the server: a
-- reader of more than 1,000 holds, or of a count that is not a whole number, counts as alive, and so do all readers
-- after the first 10,000 lookups of keys. Numbers are formatted with '%.0f' because tostring() keeps only 14 digits.
local call = redis.call
local claim, counter, field, count, lease = KEYS[1], KEYS[2], ARGV[1], ARGV[2], ARGV[3]

local MOST_HOLDS, looks = 1000, 10000
local left = call('PTTL', claim)

-- Returns the remaining time of the readers' leases in ms, at most that of the hash; -2 if all have run out.
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

-- A re-entry extends the TTL first. A server at its memory limit refuses only the first write of a script, and it
-- allows PEXPIRE: if HSET came first, the owner could not extend a claim that it still has. A claim without TTL keeps
-- none.
if yours and left ~= -1 and left < tonumber(lease) then call('PEXPIRE', claim, lease) end
-- Removes the fields of dead readers.
if not yours and left ~= -2 then call('DEL', claim) end
store_token(call, counter, string.format('%.0f', token), ARGV[4])
if yours then
  if yours ~= count then call('HSET', claim, field, count) end
  return {2, token}
end
call('HSET', claim, 'mode', 'write', field, count)

-- A claim without TTL would outlive its owner. If this user may not use PEXPIRE, the claim is deleted again.
local expiry = redis.pcall('PEXPIRE', claim, lease)
if type(expiry) == 'table' then
  call('DEL', claim)
  return expiry
end
return token
