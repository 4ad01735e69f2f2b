-- The queue of a fair lock: which waiter is first, and how long the queue is kept.

-- Removes the first waiter from the queue.
local function drop_first(queue, timeouts, alive, head)
  redis.call('LPOP', queue)
  redis.call('ZREM', timeouts, head)
  redis.call('ZREM', alive, head)
end

-- Returns whether the queue begins with a waiter of Redisson's, which has no entry in `alive`. Such a queue loses its
-- TTL.
local function keep_theirs(queue, timeouts, alive, head)
  if redis.call('ZSCORE', alive, head) then return false end
  redis.call('PERSIST', queue)
  redis.call('PERSIST', timeouts)
  return true
end

-- Drops dead waiters at the head of the queue. Waiters of Quorlock are judged by `alive`. Those of Redisson, which have
-- no entry there, are judged by `timeouts`, as Redisson does. A waiter without an entry in either is dead: a server at its
-- memory limit may evict these two keys and keep the queue, and the waiters in it would block it for ever. A waiter of
-- Quorlock that is still there queues again within seconds. One of Redisson's queues again when the wait that it was
-- told is over, which may take five minutes for each place in the queue. Returns the first of the rest, whether any were
-- dropped, and until when the first one counts as alive (nil if there is none).
local function first_waiting(queue, timeouts, alive, now)
  local call = redis.call
  local head, dropped, last = call('LINDEX', queue, 0), false, nil
  while head do
    local theirs, ours = call('ZSCORE', timeouts, head), call('ZSCORE', alive, head)
    last = tonumber(ours or theirs or nil)
    if last and (now < last or ours and last == now) then break end
    drop_first(queue, timeouts, alive, head)
    dropped = true
    head = call('LINDEX', queue, 0)
  end
  return head, dropped, last
end
