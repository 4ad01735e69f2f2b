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

-- How long Redisson allows each waiter by default, in ms.
local REDISSON_WAIT = 300000

-- Mends a queue of which the server, at its memory limit, has evicted a key. Returns its first waiter.
--
-- Without the list, the rest is deleted: a waiter that still had a time would never be appended to the list again. It
-- queues again when it asks again, which takes seconds. A list that begins with one of our waiters has a TTL, and ends
-- when the last of them is dead. If `alive` is missing, each waiter in such a list counts as alive until then: judged by
-- `timeouts`, a dead one would block the rest for five minutes for each place. If `timeouts` is missing, our waiters get
-- new times: without one, a waiter that asks again would be appended a second time. If this user may not use ZADD, which
-- a forced release does not need otherwise, the queue stays as it is.
local function whole(queue, timeouts, alive, now)
  local call, pcall = redis.call, redis.pcall
  local head, there = call('LINDEX', queue, 0), call('EXISTS', timeouts, alive)
  if head and there == 2 or not head and there == 0 then return head end
  if not head then
    -- A key of another type raises an error, and stays.
    call('ZSCORE', timeouts, '')
    call('ZSCORE', alive, '')
    call('DEL', timeouts, alive)
    return head
  end
  local ends = call('PTTL', queue)
  local lost, timed = ends >= 0 and call('EXISTS', alive) == 0, call('EXISTS', timeouts) == 1
  if timed and not lost then return head end
  local waiter, place = head, 1
  while waiter do
    if lost then pcall('ZADD', alive, string.format('%.0f', now + ends), waiter) end
    if not timed and call('ZSCORE', alive, waiter) then
      pcall('ZADD', timeouts, string.format('%.0f', now + place * REDISSON_WAIT), waiter)
    end
    waiter, place = call('LINDEX', queue, place), place + 1
  end
  if ends >= 0 then
    call('PEXPIRE', timeouts, ends)
    call('PEXPIRE', alive, ends)
  end
  return head
end

-- Drops dead waiters at the head of the queue. Waiters of Quorlock are judged by `alive`. Those of Redisson, which have
-- no entry there, are judged by `timeouts`, as Redisson does. A waiter without an entry in either is dead: the server has
-- evicted both keys, and the waiters in the queue would block it for ever. A waiter of Quorlock that is still there queues
-- again within seconds. One of Redisson's queues again when the wait that it was told is over, which may take five minutes
-- for each place in the queue. Returns the first of the rest, whether any were dropped, and until when the first one
-- counts as alive (nil if there is none).
local function first_waiting(queue, timeouts, alive, now)
  local call = redis.call
  local head, dropped, last = whole(queue, timeouts, alive, now), false, nil
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
