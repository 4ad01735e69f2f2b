"""Read-write locks as scripts. The comments name the rules of docs/src/protocol.md."""

from shared import COUNTER

# `prefix` is the beginning of the keys of readers' leases.
LEASES = """
local function lease_key(prefix, reader, n) return prefix .. reader .. ':rwlock_timeout:' .. n end
-- W16: how many keys of leases a count stands for, or nothing for one that no client has.
local function counted(text)
  local count = string.match(text or '', '^[1-9]%d*$') and tonumber(text)
  return count and count <= 1000 and count or nil
end
-- The longest that a reader's leases last; nothing if all have run out, and as long as the hash for a strange count.
local function lease_left(prefix, reader, text, whole)
  local count, most = counted(text), nil
  if not count then return whole end
  for n = 1, count do
    local left = redis.call('PTTL', lease_key(prefix, reader, n))
    if left == -1 then return whole end
    if left ~= -2 then most = math.max(most or 0, left) end
  end
  return most
end
-- W6, W9: the longest of the leases of all readers but one, or nothing if none of them lives.
local function readers_left(claim, prefix, but)
  local whole, fields, most = redis.call('PTTL', claim), redis.call('HGETALL', claim), nil
  for i = 1, #fields, 2 do
    local reader = fields[i]
    if reader ~= 'mode' and reader ~= but and not string.find(reader, ':write$') then
      local left = lease_left(prefix, reader, fields[i + 1], whole)
      if left == -1 then return -1 end
      if left then most = math.max(most or 0, left) end
    end
  end
  return most
end
-- W4: the keys of a reader that holds 'count' times, and had 'before' of them. None is made shorter.
local function write_leases(prefix, reader, count, before, lease)
  for n = 1, count do
    local key = lease_key(prefix, reader, n)
    if redis.call('SET', key, '1', 'PX', lease, 'NX') == false then extend(key, lease) end
  end
  for n = count + 1, before do redis.call('DEL', lease_key(prefix, reader, n)) end
end
local function lives(prefix, reader) return redis.call('EXISTS', lease_key(prefix, reader, 1)) == 1 end
"""

# KEYS: claim, counter. ARGV: owner, count, lease, prefix, the field of the writer that this owner may read beside.
ACQUIRE_READ = COUNTER + LEASES + """
local claim, counter = KEYS[1], KEYS[2]
local owner, count, lease, prefix, under = unpack(ARGV)
local left = redis.call('PTTL', claim)
local held = redis.call('HMGET', claim, 'mode', owner, under)                  -- W15: raises WRONGTYPE
local mode, mine = held[1], held[2]
if left ~= -2 and not mode then return {'other mode', 'plain'} end             -- W15
if mode == 'write' and not held[3] then return {'refused', left} end           -- W3
local stored, wrong = read_counter(counter)
if wrong then return redis.error_reply(wrong) end
local again = mine and lives(prefix, owner)                                    -- W4
if mode == 'read' and not again and not readers_left(claim, prefix) then       -- W9
  redis.call('DEL', claim)
  left = -2
end
write_leases(prefix, owner, tonumber(count), mine and counted(mine) or 0, lease)
redis.call('HSET', claim, owner, count)
if left == -2 then
  redis.call('HSET', claim, 'mode', 'read')                                    -- W1
  local failed = expire(claim, lease)
  if failed then return failed end
else
  extend(claim, lease)                                                         -- W2
end
return {again and 'already yours' or 'anew', text_of(stored or 0)}             -- T8
"""

# KEYS: claim, counter. ARGV: the writer's field, count, lease, retention, floor, slack, carry, prefix.
ACQUIRE_WRITE = COUNTER + LEASES + """
local claim, counter = KEYS[1], KEYS[2]
local field, count, lease, retention, floor, slack, carry, prefix = unpack(ARGV)
local left = redis.call('PTTL', claim)
local held = redis.call('HMGET', claim, 'mode', field)                         -- W15: raises WRONGTYPE
local mode, mine = held[1], held[2]
if left ~= -2 and not mode then return {'other mode', 'plain'} end             -- W15
if mode == 'write' and not mine then return {'refused', left} end              -- W6
if mode == 'read' then
  local readers = readers_left(claim, prefix)
  if readers then return {'refused', readers} end                              -- W6, W8
end
local stored, wrong = read_counter(counter)
if wrong then return redis.error_reply(wrong) end
local token = choose(stored, mine, floor, slack, carry)
write_counter(counter, token, retention)                                       -- T4
if mine then
  redis.call('HSET', claim, field, count)
  extend(claim, lease)                                                         -- W7
  return {'already yours', text_of(token)}
end
redis.call('DEL', claim)                                                       -- W9
redis.call('HSET', claim, 'mode', 'write', field, count)                       -- W5
local failed = expire(claim, lease)
if failed then return failed end
return {'anew', text_of(token)}
"""

# KEYS: claim, counter. ARGV: owner, count, lease, token, prefix.
RENEW_READ = COUNTER + LEASES + """
local claim, owner, count, lease, token, prefix = KEYS[1], unpack(ARGV)
if redis.call('TYPE', claim).ok ~= 'hash' then return false end                -- E2
local held = redis.call('HMGET', claim, 'mode', owner)
if not held[1] or not held[2] or not lives(prefix, owner) then return false end
write_leases(prefix, owner, tonumber(count), counted(held[2]) or 0, lease)     -- W13
redis.call('HSET', claim, owner, count)
extend(claim, lease)
return token
"""

# KEYS: claim, counter. ARGV: the writer's field, count, lease, retention, token.
RENEW_WRITE = COUNTER + """
local claim, counter = KEYS[1], KEYS[2]
local field, count, lease, retention, token = unpack(ARGV)
if redis.call('TYPE', claim).ok ~= 'hash' then return false end                -- E2
local held = redis.call('HMGET', claim, 'mode', field)
if held[1] ~= 'write' or not held[2] then return false end
local kind = redis.call('TYPE', counter).ok
if kind ~= 'none' and kind ~= 'string' then return false end
local stored, wrong = read_counter(counter)
if wrong then return false end
local value = math.max(stored or 0, tonumber(token))                           -- W14
extend(claim, lease)
redis.call('HSET', claim, field, count)
carry_counter(counter, stored, value, retention, lease)                        -- T7
return text_of(value)
"""

# KEYS: claim. ARGV: owner, count, prefix, channel.
RELEASE_READ = COUNTER + LEASES + """
local claim, owner, count, prefix, channel = KEYS[1], unpack(ARGV)
count = tonumber(count)
local held = redis.call('HMGET', claim, 'mode', owner)                         -- W15: raises WRONGTYPE
if not held[1] or not held[2] then return 'not yours' end
local before = counted(held[2]) or 0
if 0 < count then                                                              -- W11
  if not lives(prefix, owner) then return 'not yours' end
  for n = count + 1, before do redis.call('DEL', lease_key(prefix, owner, n)) end
  redis.call('HSET', claim, owner, count)
  return 'kept'
end
local stays = held[1] == 'write' or readers_left(claim, prefix, owner)         -- W10
for n = 1, before do redis.call('DEL', lease_key(prefix, owner, n)) end
if not stays then
  redis.call('DEL', claim)
  redis.pcall('PUBLISH', channel, '0')
  return 'freed'
end
redis.call('HDEL', claim, owner)
return 'left'
"""

# KEYS: claim. ARGV: the writer's field, count, prefix, channel.
RELEASE_WRITE = COUNTER + LEASES + """
local claim, field, count, prefix, channel = KEYS[1], unpack(ARGV)
local held = redis.call('HMGET', claim, 'mode', field)                         -- W15: raises WRONGTYPE
if held[1] ~= 'write' or not held[2] then return 'not yours' end
if count ~= '0' then redis.call('HSET', claim, field, count) return 'kept' end
local stays = readers_left(claim, prefix)                                      -- W12
if stays then
  redis.call('HDEL', claim, field)
  redis.call('HSET', claim, 'mode', 'read')
else
  redis.call('DEL', claim)
end
redis.pcall('PUBLISH', channel, '1')
if not stays then return 'freed' end
return 'left'
"""
