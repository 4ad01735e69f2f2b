-- Extends claims of owners that still have them; never makes one.
--
-- KEYS[k]    the k-th of n claims, as acquire.lua makes it
-- KEYS[n+k]  the token counter of its name: a string
-- ARGV[1]    how long an unused token counter is kept in ms; 0 = forever
-- ARGV       for each group of claims that share these values: size of the group, hold count from now on, lease and
--            margin in ms, and 'versions' with a margin, empty without; then for each claim in it: owner, token of the
--            hold, and with a margin the claim version that this request writes
--
-- Replies  an array with one integer for each claim, in order:
--          the token stored now  the owner had the claim, which is extended
--          -1                    it had none (another owner's, gone, or not a lock)
--
-- The script must be atomic: between a look and the extension, A's claim could expire, B be granted the name, and A
-- extend B's claim. The claims are independent of each other: an error with one of them does not prevent the renewal
-- of the others.
--
-- A client renews a hundred claims in one call, so the cost of each beyond its commands is kept low: most claims have
-- a counter with exactly their token, and one command reads all counters.
local call, keys, args = redis.call, KEYS, ARGV
local claims, kept = #keys / 2, args[1]
-- Redis 7 extends a claim only if that makes its TTL longer.
local can_compare = redis.REDIS_VERSION_NUM
-- MGET needs a right that is optional, and unpack() is limited to some 8,000 values. MGET returns nothing for a missing
-- key, and nothing for a key of another type.
local is_read_together = 1 < claims and claims <= 1000
local texts = is_read_together and redis.pcall('MGET', unpack(keys, claims + 1)) or {}
local now, replies, at, left = nil, {}, 2, 0
local count, lease, versions, is_settled

for k = 1, claims do
  if left == 0 then
    left, count, lease, versions = unpack(args, at, at + 3)
    at, left = at + 4, left + 0
    now = now or server_now()
    is_settled = not is_counter_due(kept, lease, now)
  end
  left = left - 1
  local claim, owner, text, mine = keys[k], args[at], args[at + 1], nil
  at = at + 2
  if versions ~= '' then
    mine, at = args[at], at + 1
  end

  local held, token, stored = look('HMGET', claim, 'mode', owner), tonumber(text), texts[k]
  local is_ours = held and not held[1] and held[2]
  if is_ours then
    if stored == text and token < 2^53 then
      stored = token
    else
      stored = look('GET', keys[claims + k])
      if stored == nil then is_ours = false end
      if stored then
        stored = counted(stored)
        if not stored then is_ours = false end
      end
    end
  end
  if not is_ours then
    replies[k] = -1
  else
    if stored ~= token then token = next_token(stored, token, '') end
    -- PEXPIRE comes first. A server at its memory limit refuses only the first write of a script, and it allows
    -- PEXPIRE: if another write came first, full memory would end every hold. A claim without TTL keeps none.
    if can_compare then
      call('PEXPIRE', claim, lease, 'GT')
    else
      local ttl = call('PTTL', claim)
      if ttl ~= -1 and ttl < tonumber(lease) then call('PEXPIRE', claim, lease) end
    end
    if stored ~= token or not is_settled then
      -- The text of a counter that grows is old. If its name occurs again, the counter is read again.
      if stored ~= token then texts = {} end
      carry_token(call, keys[claims + k], stored, token, kept, lease)
    end
    local value = with_count(held[2], count, mine)
    if value ~= held[2] then call('HSET', claim, owner, value) end
    replies[k] = token
  end
end
return replies
