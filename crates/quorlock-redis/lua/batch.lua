-- Executes requests of several callers in one call, as if each had come by itself, one after another.
--
-- The scripts of single requests stand before it, as functions of their KEYS and ARGV: acquire() and renew(). No name
-- stands in two requests of a call. So none of them sees what another one does, their order is of no account, and what
-- most of them look at first is looked at for all of them by one command.
--
-- KEYS     three of each acquire, as acquire.lua takes them; then two of each renewal of one claim, as renew.lua; then
--          the claim of each release; last, with ARGV[1], the marker
-- ARGV[1]  the ripe marker of the process that the client trusts; empty if no request wants to know
-- ARGV[2]  how many groups of acquires there are that share what follows
-- ARGV[3]  how many renewals
-- ARGV[4]  how many releases; each of them frees its name
-- ARGV     of each group: how many acquires, hold count, lease, and margin, in ms, how long an unused token counter is
--          kept in ms, floor of new tokens, how far that may be from this server's clock in ms, and the end of their
--          beats, ' <lease in ms>', empty without a margin; then of each acquire in it: owner, and with a margin
--          ' <number of the request>'
-- ARGV     of each renewal: the six arguments of renew.lua
-- ARGV     of each release: owner, channel of the name
--
-- Replies  an array: for each request, in the order of the keys, the reply of its own script, or an error
--          nil: nothing was done, and each may ask by itself: the server is another process than the one that is trusted
-- Errors   UNDONE  the same: what is looked at for all of them may not be looked at, or not by such a command
--
-- One request's error is its own: each write that can be refused is caught where it is made, and what was written of
-- that claim before is undone. A raised token counter stays: tokens only grow. Acquires come first: a server that has
-- reached its memory limit refuses the first write of a script only, and would let a grant pass behind a deletion.
local call, try, keys, args = redis.call, redis.pcall, KEYS, ARGV
local trusted, renewals, releases = args[1], args[3] + 0, args[4] + 0
local acquires = (#keys - 2 * renewals - releases - (trusted ~= '' and 1 or 0)) / 3
local now, free, stored, strange

local function look_for_all()
  if trusted ~= '' then
    local own = 'master_replid:' .. string.sub(trusted, 1, 13)
    if call('GET', keys[#keys]) ~= trusted then return false end
    if not string.find(call('INFO', 'replication'), own, 1, true) then return false end
  end
  if acquires == 0 then return true end
  now = server_now()
  local ways, counters = {}, {}
  for k = 1, acquires do
    ways[2 * k - 1], counters[k], ways[2 * k] = keys[3 * k - 2], keys[3 * k - 1], keys[3 * k]
  end
  free = call('EXISTS', unpack(ways)) == 0
  stored = call('MGET', unpack(counters))
  -- Where MGET finds nothing, something else may stand.
  local unseen = {}
  for k = 1, acquires do
    if not stored[k] then unseen[#unseen + 1] = counters[k] end
  end
  strange = unseen[1] and call('EXISTS', unpack(unseen)) ~= 0
  return true
end

local ok, same = pcall(look_for_all)
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

-- Records a claim of a free name, with this token: an error, if there was one.
local function record(claim, counter, text, kept, owner, count, beat, lease)
  local reply = store_token(try, counter, text, kept)
  if reply.err then return reply end
  if beat ~= '' then
    reply = try('HSET', claim, owner, count, 'beat', beat)
  else
    reply = try('HSET', claim, owner, count)
  end
  if type(reply) == 'table' then return reply end
  -- A claim without TTL would outlive its owner.
  reply = try('PEXPIRE', claim, lease)
  if type(reply) == 'table' then
    try('DEL', claim)
    return reply
  end
end

local replies, k, at = {}, 0, 5
for _ = 1, args[2] do
  local many, count, lease, kept, floor, slack, rest = unpack(args, at, at + 6)
  at = at + 7
  local asked = floor + 0
  for _ = 1, many do
    k = k + 1
    local claim, counter, queue, owner, beat = keys[3 * k - 2], keys[3 * k - 1], keys[3 * k], args[at], ''
    at = at + 1
    if rest ~= '' then
      beat = owner .. args[at] .. rest
      at = at + 1
    end
    local before = stored[k]
    local is_usual = not before and not strange
    if before then
      before = counted(before)
      is_usual = before
    end
    if is_usual and (free or call('EXISTS', claim, queue) == 0) then
      local token = next_token(before, asked, slack, false, now)
      local text = token == asked and floor or string.format('%.0f', token)
      local wrong = record(claim, counter, text, kept, owner, count, beat, lease)
      replies[k] = wrong and refusal(wrong) or token
    else
      replies[k] = by_itself(acquire, {claim, counter, queue}, {owner, count, lease, kept, floor, slack, beat, ''})
    end
  end
end

local key = 3 * acquires
for _ = 1, renewals do
  k = k + 1
  replies[k] = by_itself(renew, {keys[key + 1], keys[key + 2]}, {unpack(args, at, at + 5)})
  key, at = key + 2, at + 6
end

-- The claims that end, and whose replies say so.
local ended, whose = {}, {}
for _ = 1, releases do
  k, key = k + 1, key + 1
  local claim = keys[key]
  local held = try('HMGET', claim, 'mode', args[at])
  if held.err then
    replies[k] = refusal(held)
  elseif held[1] or not held[2] then
    replies[k] = 0
  else
    local told = try('PUBLISH', args[at + 1], '0')
    if type(told) == 'table' then
      replies[k] = refusal(told)
    else
      replies[k], ended[#ended + 1], whose[#whose + 1] = told == 0 and 1 or told + 3, claim, k
    end
  end
  at = at + 2
end
if ended[1] then
  local deleted = try('DEL', unpack(ended))
  if type(deleted) == 'table' then
    for _, k in ipairs(whose) do replies[k] = refusal(deleted) end
  end
end
return replies
