-- Lowers the count of a writer's claim, or ends it and wakes waiters.
--
-- KEYS[1]  the claims: a hash {mode: read or write, reader: count, writer..':write': count} with a TTL
-- ARGV[1]  the owner's field, which ends with ':write'
-- ARGV[2]  hold count from now on; 0 ends the claim
-- ARGV[3]  prefix of the keys of the readers' leases; the rest is reader..':rwlock_timeout:'..n
-- ARGV[4]  channel of the name
--
-- Replies  1  freed
--          2  kept at the stated count
--          3  ended; the owner still reads, and others may read too
--          {1, error}, {3, error}  the same, and the server refused to publish that
--          0  not the owner's: it never was, has expired, or was released before
-- Errors   WRONGTYPE  the key has another type
--
-- The script must be atomic: between a look and the deletion, A's claim could expire, B be granted the name, and B's
-- claim be deleted. Waiters are woken also when another lease to read remains: the readers among them may enter. The
-- deletion comes first, and an error of the message does not undo it.
local call = redis.call
local claim, field = KEYS[1], ARGV[1]

local held = call('HMGET', claim, 'mode', field)
if held[1] ~= 'write' or not held[2] then return 0 end
if ARGV[2] ~= '0' then
  call('HSET', claim, field, ARGV[2])
  return 2
end

local MOST_HOLDS = 1000

local function lease(reader, n) return ARGV[3] .. reader .. ':rwlock_timeout:' .. n end

-- Returns whether an owner reads whose lease has not run out. A reader of more than 1,000 holds, or of a count that
-- is not a whole number, counts as alive. So do all readers after the first 10,000 lookups of keys: every loop is
-- bounded.
local function somebody_reads()
  local cursor, looks = '0', 10000
  repeat
    local found = call('HSCAN', claim, cursor)
    cursor = found[1]
    for i = 1, #found[2], 2 do
      local reader, text = found[2][i], found[2][i + 1]
      if reader ~= 'mode' and reader ~= field then
        local holds = string.match(text, '^[1-9]%d*$') and #text <= 4 and tonumber(text)
        if not holds or MOST_HOLDS < holds then return true end
        for n = 1, holds do
          looks = looks - 1
          if looks == 0 or call('EXISTS', lease(reader, n)) == 1 then return true end
        end
      end
    end
  until cursor == '0'
  return false
end

local stays = somebody_reads()
if stays then
  call('HDEL', claim, field)
  call('HSET', claim, 'mode', 'read')
else
  call('DEL', claim)
end
local reply = stays and 3 or 1
local told = redis.pcall('PUBLISH', ARGV[4], '1')
return type(told) == 'table' and {reply, told} or reply
