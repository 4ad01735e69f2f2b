-- Executes requests of several callers in one call, as if each had come by itself, one after another.
--
-- The scripts of single requests stand before it, as functions of their KEYS and ARGV: acquire() and renew(). No name
-- stands in two requests of a call. So none of them sees what another one does, their order is of no account, and what
-- most of them look at first is looked at for all of them by one command.
--
-- KEYS     of each acquire its claim and the queue of the name; then of each acquire the token counter; then two of each
--          renewal of one claim, as renew.lua takes them; then the claim of each release; last, with ARGV[1], the marker
-- ARGV[1]  the ripe marker of the process that the client trusts; empty if no request wants to know
-- ARGV[2]  how many acquires
-- ARGV[3]  how many renewals
-- ARGV[4]  how many releases; each of them frees its name
-- ARGV     of each group of acquires that share what follows: how many, hold count, lease, and margin, in ms, how long an
--          unused token counter is kept in ms, floor of new tokens, how far that may be from this server's clock in ms, and
--          'beats' with a margin, empty without; then of each acquire in it: owner, and with a margin its beat
-- ARGV     of each renewal: the six arguments of renew.lua
-- ARGV     of each release: owner, channel of the name
--
-- Replies  an array: for each request, acquires first, then renewals, then releases, the reply of its own script, or an error
--          nil: nothing was done, and each may ask by itself: the server is another process than the one that is trusted
-- Errors   UNDONE  the same: what is looked at for all of them may not be looked at, or not by such a command
--
-- One request's error is its own: what was written of that claim before is undone. A raised token counter stays: tokens
-- only grow. Acquires come first: a server that has reached its memory limit refuses the first write of a script only,
-- and would let a grant pass behind a deletion.
--
-- What a request costs here besides its commands is kept low. A function or a table that grows costs as much as half a
-- command, so there are few functions, and keys stand in the order in which one command takes many of them by unpack(). An
-- error ends the loop in which it comes up, and the loop is run again, for those without a reply: to watch over each
-- command would cost all of them, and there are hardly any errors.
local call, keys, args = redis.call, KEYS, ARGV
local trusted, acquires, renewals, releases = args[1], args[2] + 0, args[3] + 0, args[4] + 0

-- Whether the server is the process that is trusted; its time; whether every name is free; what stands in the counters,
-- and whether one of them is something else.
local function look_for_all()
  if trusted ~= '' then
    local own = 'master_replid:' .. string.sub(trusted, 1, 13)
    if call('GET', keys[#keys]) ~= trusted then return false end
    if not string.find(call('INFO', 'replication'), own, 1, true) then return false end
  end
  if acquires == 0 then return true end
  local now = server_now()
  local are_free = call('EXISTS', unpack(keys, 1, 2 * acquires)) == 0
  local stored, seen = call('MGET', unpack(keys, 2 * acquires + 1, 3 * acquires)), 0
  for k = 1, acquires do
    if stored[k] then seen = seen + 1 end
  end
  -- Where MGET finds nothing, something else may stand.
  local is_strange = seen < acquires and call('EXISTS', unpack(keys, 2 * acquires + 1, 3 * acquires)) ~= seen
  return true, now, are_free, stored, is_strange
end

local ok, same, now, are_free, stored, is_strange = pcall(look_for_all)
if not ok then return redis.error_reply('UNDONE ' .. tostring(type(same) == 'table' and same.err or same)) end
if not same then return false end

-- An error as the reply to one request.
local function refusal(reply)
  return {err = (type(reply) == 'table' and reply.err or tostring(reply)) .. ' script: batch, on @user_script'}
end

local function by_itself(execute, keys, args)
  local ok, reply = pcall(execute, keys, args)
  if ok and (type(reply) ~= 'table' or not reply.err) then return reply end
  return refusal(reply)
end

-- The reply that is missing where an error comes up, and a claim that has no TTL yet.
local doing, half_made

-- Grants to those that have no reply what is free, as acquire() would. Returns where the arguments of the rest begin.
local function grant(replies)
  local call, keys, args = call, keys, args
  local at, left = 5, 0
  local count, lease, kept, floor, slack, beats, fresh, token_before, text
  for k = 1, acquires do
    if left == 0 then
      left, count, lease, kept, floor, slack, beats = unpack(args, at, at + 6)
      at, left = at + 7, left + 0
      token_before, text = floor + 0, floor
      -- The token of a name that has had none, or a smaller one.
      fresh = next_token(false, token_before, slack, false, now)
    end
    left = left - 1
    local owner, beat = args[at], ''
    at = at + 1
    if beats ~= '' then
      beat, at = args[at], at + 1
    end
    if not replies[k] then
      doing = k
      local claim, queue, counter = keys[2 * k - 1], keys[2 * k], keys[2 * acquires + k]
      local token, is_usual = fresh, not is_strange
      if stored[k] then
        local before = counted(stored[k])
        is_usual = before
        if before and fresh <= before then token = before + 1 end
      end
      if is_usual and (are_free or call('EXISTS', claim, queue) == 0) then
        -- Nearly always it is that of the one before.
        if token ~= token_before then
          token_before, text = token, string.format('%.0f', token)
        end
        store_token(call, counter, text, kept)
        half_made = claim
        if beat == '' then
          call('HSET', claim, owner, count)
        else
          call('HSET', claim, owner, count, 'beat', beat)
        end
        call('PEXPIRE', claim, lease)
        half_made = nil
        replies[k] = token
      else
        replies[k] = by_itself(acquire, {claim, counter, queue}, {owner, count, lease, kept, floor, slack, beat, ''})
      end
    end
  end
  return at
end

-- Frees the names of those releases that have no reply and are their owners', but for the deletion. Returns how many are.
local function let_go(replies, key, at)
  local call, keys, args, ends = call, keys, args, 0
  for k = acquires + renewals + 1, acquires + renewals + releases do
    key, at = key + 1, at + 2
    if not replies[k] then
      doing = k
      local held = call('HMGET', keys[key], 'mode', args[at - 2])
      if held[1] or not held[2] then
        replies[k] = 0
      else
        local told = call('PUBLISH', args[at - 1], '0')
        replies[k] = told == 0 and 1 or told + 3
      end
    end
    if type(replies[k]) == 'number' and 0 < replies[k] then ends = ends + 1 end
  end
  return ends
end

-- Runs one of the two until each of its requests has a reply.
local function all_of(act, replies, ...)
  while true do
    local ok, result = pcall(act, replies, ...)
    if ok then return result end
    -- A claim without TTL would outlive its owner.
    if half_made then redis.pcall('DEL', half_made) end
    half_made = nil
    if replies[doing] then error(result) end
    replies[doing] = refusal(result)
  end
end

local replies, key = {}, 3 * acquires
local at = acquires == 0 and 5 or all_of(grant, replies)

for k = acquires + 1, acquires + renewals do
  replies[k] = by_itself(renew, {keys[key + 1], keys[key + 2]}, {unpack(args, at, at + 5)})
  key, at = key + 2, at + 6
end

local ends = releases == 0 and 0 or all_of(let_go, replies, key, at)
if ends == 0 then return replies end
local ended, first = keys, acquires + renewals
if ends < releases then
  ended = {}
  for k = 1, releases do
    local reply = replies[first + k]
    if type(reply) == 'number' and 0 < reply then ended[#ended + 1] = keys[key + k] end
  end
  key = 0
end
local deleted = redis.pcall('DEL', unpack(ended, key + 1, key + ends))
if type(deleted) == 'table' then
  for k = first + 1, first + releases do
    if type(replies[k]) == 'number' and 0 < replies[k] then replies[k] = refusal(deleted) end
  end
end
return replies
