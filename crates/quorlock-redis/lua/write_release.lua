-- Lowers the count of a writer's claim, or ends it and wakes those who wait.
--
-- KEYS[1]  the claims: a hash {mode: read or write, reader: count, writer..':write': count} with a TTL
-- ARGV[1]  the owner's field, which ends with ':write'
-- ARGV[2]  hold count from now on; 0 ends the claim
-- ARGV[3]  what the keys of the readers' own leases begin with; then comes reader..':rwlock_timeout:'..n
-- ARGV[4]  channel of the name
--
-- Replies  1  freed
--          2  kept at the stated count
--          3  ended; the writer goes on reading, and others may read too
--          0  not the owner's: it never was, has expired, or was released before
-- Errors   WRONGTYPE  the key is something else
--
-- It must be atomic: between looking and deleting, the claim could expire and become another's. Those who wait are told
-- also when the writer goes on reading: the readers among them need not wait any longer. The message goes out before
-- anything is deleted, because it is no write: a user who may not publish is told so while nothing has been done.
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

-- Whether an owner reads whose lease has not run out. A reader of more than 1,000 holds, or of what is no whole
-- number, is taken to live, and so is who comes after 10,000 keys that were looked for: every loop is bounded.
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
call('PUBLISH', ARGV[4], '1')
if not stays then
  call('DEL', claim)
  return 1
end
call('HDEL', claim, field)
call('HSET', claim, 'mode', 'read')
return 3
