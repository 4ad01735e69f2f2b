-- Lowers the count of a reader's claim, or ends it. The last live reader frees the name and wakes waiters.
--
-- KEYS[1]  the claims: a hash {mode: read or write, reader: count, writer..':write': count} with a TTL
-- ARGV[1]  owner
-- ARGV[2]  hold count from now on; 0 ends the claim
-- ARGV[3]  prefix of the keys of the readers' leases; the rest is reader..':rwlock_timeout:'..n
-- ARGV[4]  channel of the name
--
-- Replies  1  freed
--          {1, error}  freed, and the server refused to publish that
--          2  kept at the stated count
--          3  ended; others read, or an owner writes
--          0  not the owner's: it never was, has expired, or was released before
-- Errors   WRONGTYPE  the key has another type
--
-- The script must be atomic: between a look and the deletion, B could begin to read, and its claim would be deleted.
-- The deletion comes first, and an error of the message does not undo it.
local call = redis.call
local claim, owner, count = KEYS[1], ARGV[1], tonumber(ARGV[2])

local held = call('HMGET', claim, 'mode', owner)
local mode, text = held[1], held[2]
if (mode ~= 'read' and mode ~= 'write') or not text then return 0 end

-- No Quorlock client has more holds than this. If another program's count is larger, the rest of the keys is left to
-- expire.
local MOST_HOLDS = 1000
local before = string.match(text, '^[1-9]%d*$') and #text <= 4 and math.min(tonumber(text), MOST_HOLDS) or MOST_HOLDS

local function lease(reader, n) return ARGV[3] .. reader .. ':rwlock_timeout:' .. n end

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

-- Returns whether another owner reads whose lease has not run out. A reader of more than 1,000 holds, or of a count
-- that is not a whole number, counts as alive. So do all readers after the first 10,000 lookups of keys: every loop
-- is bounded.
local function somebody_reads()
  local cursor, looks = '0', 10000
  repeat
    local found = call('HSCAN', claim, cursor)
    cursor = found[1]
    for i = 1, #found[2], 2 do
      local reader, text = found[2][i], found[2][i + 1]
      if reader ~= 'mode' and reader ~= owner then
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

local stays = mode == 'write' or somebody_reads()
for i = 1, before do call('DEL', lease(owner, i)) end
if stays then
  call('HDEL', claim, owner)
  return 3
end
call('DEL', claim)
local told = redis.pcall('PUBLISH', ARGV[4], '0')
return type(told) == 'table' and {1, told} or 1
