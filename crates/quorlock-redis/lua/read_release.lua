-- Lowers the count of a reader's claim, or ends it; the last one who lives frees the name and wakes those who wait.
--
-- KEYS[1]  the claims: a hash {mode: read or write, reader: count, writer..':write': count} with a TTL
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on; 0 ends the claim
-- ARGV[3]  what the keys of the readers' own leases begin with; then comes reader..':rwlock_timeout:'..n
-- ARGV[4]  channel of the name
--
-- Replies  1  freed
--          2  kept at the stated count
--          3  ended; others read, or somebody writes
--          0  not the owner's: it never was, has expired, or was released before
-- Errors   WRONGTYPE  the key is something else
--
-- It must be atomic: between looking and deleting, others could come or go. The message goes out before anything is
-- deleted, because it is no write: a user who may not publish is told so while nothing has been done.
local call = redis.call
local claim, owner, count = KEYS[1], ARGV[1], tonumber(ARGV[2])

local held = call('HMGET', claim, 'mode', owner)
local mode, before = held[1], tonumber(held[2] or nil)
if (mode ~= 'read' and mode ~= 'write') or not before then return 0 end

local function lease(reader, n) return ARGV[3] .. reader .. ':rwlock_timeout:' .. string.format('%.0f', n) end

if 0 < count then
  local own = call('PTTL', lease(owner, 1))
  if own == -2 then return 0 end
  for i = before + 1, count do
    if own == -1 then call('SET', lease(owner, i), '1') else call('SET', lease(owner, i), '1', 'PX', math.max(own, 1)) end
  end
  for i = count + 1, before do call('DEL', lease(owner, i)) end
  call('HSET', claim, owner, ARGV[2])
  return 2
end

-- Whether somebody else reads whose lease has not run out.
local function somebody_reads()
  local cursor = '0'
  repeat
    local found = call('HSCAN', claim, cursor)
    cursor = found[1]
    for i = 1, #found[2], 2 do
      local reader, holds = found[2][i], tonumber(found[2][i + 1])
      if reader ~= owner and holds then
        for n = 1, holds do
          if call('EXISTS', lease(reader, n)) == 1 then return true end
        end
      end
    end
  until cursor == '0'
  return false
end

local stays = mode == 'write' or somebody_reads()
if not stays then call('PUBLISH', ARGV[4], '0') end
for i = 1, before do call('DEL', lease(owner, i)) end
if stays then
  call('HDEL', claim, owner)
  return 3
end
call('DEL', claim)
return 1
