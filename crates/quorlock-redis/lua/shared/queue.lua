-- The queue of a fair lock: who is first in it.

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
    call('LPOP', queue)
    call('ZREM', timeouts, head)
    call('ZREM', alive, head)
    dropped = true
    head = call('LINDEX', queue, 0)
  end
  return head, dropped, last
end
