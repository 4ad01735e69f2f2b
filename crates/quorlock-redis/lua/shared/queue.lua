-- The queue of a fair lock: who is first in it, and for how long it is kept.

-- The first waiter leaves the queue.
local function drop_first(queue, timeouts, alive, head)
  redis.call('LPOP', queue)
  redis.call('ZREM', timeouts, head)
  redis.call('ZREM', alive, head)
end

-- A queue that begins with a waiter of Redisson's, which has no entry in 'alive', has no TTL. Returns whether it begins with one.
local function keep_theirs(queue, timeouts, alive, head)
  if redis.call('ZSCORE', alive, head) then return false end
  redis.call('PERSIST', queue)
  redis.call('PERSIST', timeouts)
  return true
end

-- Drops the waiters at its head that are dead by now. Those of ours are judged by 'alive', those of Redisson, which have no
-- entry there, by 'timeouts', as Redisson does. Returns the first of the rest, whether any were dropped, and until when the
-- first is taken to be alive, nil when nothing says so.
local function first_waiting(queue, timeouts, alive, now)
  local call = redis.call
  local head, dropped, last = call('LINDEX', queue, 0), false, nil
  while head do
    local theirs, ours = call('ZSCORE', timeouts, head), call('ZSCORE', alive, head)
    last = tonumber(ours or theirs or nil)
    if not (last and (last < now or not ours and last <= now)) then break end
    drop_first(queue, timeouts, alive, head)
    dropped = true
    head = call('LINDEX', queue, 0)
  end
  return head, dropped, last
end
