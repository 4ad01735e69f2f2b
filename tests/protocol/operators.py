"""The requests of operators as scripts. The comments name the rules of docs/src/protocol.md."""

from fair import QUEUE
from read_write import LEASES
from shared import COUNTER

# Returns the kind of a key, 'nothing', 'plain', 'read-write' or 'no lock' (O4), and the fields of its hash.
KIND = """
local function whole(text) return string.match(text or '', '^[1-9]%d*$') and #text <= 15 end
local function kind_of(claim)
  local kind = redis.call('TYPE', claim).ok
  if kind == 'none' then return 'nothing', {} end
  if kind ~= 'hash' then return 'no lock', {} end
  local fields, flat = {}, redis.call('HGETALL', claim)
  for i = 1, #flat, 2 do fields[flat[i]] = flat[i + 1] end
  local mode = fields.mode
  fields.mode = nil
  local many = 0
  for field, count in pairs(fields) do
    if not mode then count = string.match(count, '^(%d+) %d+ %d+$') or count end  -- B1
    if not whole(count) then return 'no lock', {} end
    fields[field], many = count, many + 1
  end
  if mode == 'read' or mode == 'write' then return 'read-write', fields end
  return not mode and many == 1 and 'plain' or 'no lock', fields
end
"""

# KEYS: claim, counter, queue. ARGV: prefix of the readers' leases. Returns the kind of the key, the number of waiters, the counter,
# the TTL, the owner or writer, its count, and the number of readers.
INSPECT = COUNTER + LEASES + KIND + """
local claim, counter, queue, prefix = KEYS[1], KEYS[2], KEYS[3], ARGV[1]
local stored, wrong = read_counter(counter)
if wrong then return redis.error_reply(wrong) end
local kind, fields = kind_of(claim)
local left, owner, count, readers = redis.call('PTTL', claim), false, false, 0
for field, text in pairs(fields) do
  local writer = kind == 'read-write' and string.match(field, '^(.*):write$')
  if writer or kind == 'plain' then owner, count = writer or field, text
  elseif lease_left(prefix, field, text, left) then readers = readers + 1 end
end
return {kind, redis.call('LLEN', queue), stored and text_of(stored) or false, left, owner, count, readers}
"""

# KEYS: claim, queue, timeouts, alive. ARGV: channel of the plain lock, of the read-write lock, prefix of the readers' leases.
FORCE_RELEASE = COUNTER + QUEUE + LEASES + KIND + """
local claim, queue, timeouts, alive = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local channel, shared_channel, prefix = unpack(ARGV)
local kind, fields = kind_of(claim)
if kind == 'no lock' then return redis.error_reply('WRONGTYPE the key is no lock') end     -- O4
if kind == 'read-write' then                                                               -- O2
  for reader, text in pairs(fields) do
    for n = 1, counted(text) or 0 do redis.call('DEL', lease_key(prefix, reader, n)) end
  end
  redis.call('DEL', claim)
  redis.pcall('PUBLISH', shared_channel, '1')
  return 'freed'
end
local now = server_now()
local dead, first = look_at_queue(queue, timeouts, alive, now)
if kind == 'nothing' and not first and dead == 0 then return 'was free' end                -- O3
drop(queue, timeouts, alive, dead)                                                         -- F4
if kind == 'nothing' and dead == 0 then
  leave(queue, timeouts, alive, first)
  dead, first = look_at_queue(queue, timeouts, alive, now)
  drop(queue, timeouts, alive, dead)
end
keep(queue, timeouts, alive, 0)
redis.call('DEL', claim)
redis.pcall('PUBLISH', first and channel .. ':' .. first or channel, '0')                  -- O2, O3
return 'freed'
"""
