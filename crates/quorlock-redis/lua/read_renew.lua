-- Extends the claims of readers that still have them; never makes one.
--
-- KEYS[k]     the k-th claims: a hash {mode: read or write, reader: count} with a TTL (k counts from 1)
-- ARGV[5k-4]  owner
-- ARGV[5k-3]  hold count from now on
-- ARGV[5k-2]  lease in ms
-- ARGV[5k-1]  token of the hold, which is the reply
-- ARGV[5k]    prefix of the keys of the owner's lease; the n-th hold's key ends with n
--
-- Replies  an array with one integer for each claim, in order:
--          the token  the owner had the claim, which is extended
--          -1         it had none (gone, its own lease has run out, or not a read-write lock)
--
-- The script must be atomic: between a look and the extension, the claim could expire and a writer be granted the
-- name. The claims are independent of each other: an error with one of them does not prevent the renewal of the
-- others. Only the owner's own lease is extended, or live readers would keep the claims of dead ones.
local call = redis.call

local function renew(claim, owner, count, lease, token, own)
  local held = look('HMGET', claim, 'mode', owner)
  if not held or (held[1] ~= 'read' and held[1] ~= 'write') or not held[2] then return -1 end
  if call('EXISTS', own .. '1') == 0 then return -1 end

  local ms = tonumber(lease)
  for i = 1, tonumber(count) do
    local left = call('PTTL', own .. i)
    if left == -2 then
      call('SET', own .. i, '1', 'PX', lease)
    elseif left ~= -1 and left < ms then
      call('PEXPIRE', own .. i, lease)
    end
  end
  -- No Quorlock client has more than 1,000 holds. If another program's count is larger, the rest of the keys is left
  -- to expire.
  local text = held[2]
  local before = string.match(text, '^[1-9]%d*$') and #text <= 4 and math.min(tonumber(text), 1000) or 1000
  for i = tonumber(count) + 1, before do call('DEL', own .. i) end
  local left = call('PTTL', claim)
  if left ~= -1 and left < ms then call('PEXPIRE', claim, lease) end
  if held[2] ~= count then call('HSET', claim, owner, count) end
  return tonumber(token)
end

local replies = {}
for i = 1, #KEYS do
  local at = 5 * i - 4
  replies[i] = renew(KEYS[i], ARGV[at], ARGV[at + 1], ARGV[at + 2], ARGV[at + 3], ARGV[at + 4])
end
return replies
