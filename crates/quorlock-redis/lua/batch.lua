-- Executes requests of several callers in one call, with the effect of executing them one after another.
--
-- The scripts of single requests precede this one as functions of their KEYS and ARGV: acquire() and renew(). No key
-- of a name occurs in two requests of a call (x and {x} have the same counter). So no request sees the effect of another,
-- their order does not matter, and one command can make for all of them the check that most of them begin with.
--
-- KEYS     for each acquire, its claim and the queue of the name; then for each acquire, the token counter; then two for
--          each renewal of one claim, as in renew.lua; then the claim of each release; last, if ARGV[1] is set, the marker
-- ARGV[1]  the ripe marker of the process that the client trusts; empty if no request checks it
-- ARGV[2]  number of acquires
-- ARGV[3]  number of renewals
-- ARGV[4]  number of releases; each of them frees its name
-- ARGV     for each group of acquires that share these values: size of the group, hold count, lease and margin in ms, how
--          long an unused token counter is kept in ms, floor of new tokens, how far the floor may be from this server's
--          clock in ms, and 'versions' with a margin, empty without; then for each acquire in it: owner, with a margin its claim
--          version, and with a trusted process a token that the client has seen, or empty
-- ARGV     for each renewal: the arguments of renew.lua, seven, or eight with a margin
-- ARGV     for each release: owner, channel of the name
--
-- Replies  an array: for each request, acquires first, then renewals, then releases, the reply of its own script, or an error
--          nil: nothing was done, and each request may be sent by itself: the server is not the process that is trusted
-- Errors   UNDONE  the same: a command for all of them failed; perhaps the user has no permission for it
--
-- An error concerns one request only: what was written of that claim is deleted again. A raised token counter stays,
-- since tokens only grow. Acquires come first: a server at its memory limit refuses only the first write of a script,
-- and after the deletion of a release it would let a grant pass.
--
-- The cost of each request beyond its commands is kept low. A call of a function or an append to a table costs as
-- much as half a command, so there are few functions, and the keys are in an order in which one command takes many of
-- them by unpack(). An error ends its loop, and the loop runs again for the requests without a reply: a pcall for
-- each command would slow down every request, and errors are rare.
local call, keys, args = redis.call, KEYS, ARGV
local trusted, acquires, renewals, releases = args[1], args[2] + 0, args[3] + 0, args[4] + 0

-- Returns whether the server is the trusted process, its time, whether every name is free, the values of the
-- counters, and whether a counter key has another type.
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
  -- MGET returns nothing for a missing key, and nothing for a key of another type.
  local is_strange = seen < acquires and call('EXISTS', unpack(keys, 2 * acquires + 1, 3 * acquires)) ~= seen
  return true, now, are_free, stored, is_strange
end

local ok, same, now, are_free, stored, is_strange = pcall(look_for_all)
if not ok then return redis.error_reply('UNDONE ' .. tostring(type(same) == 'table' and same.err or same)) end
if not same then return false end

-- Makes an error the reply to one request.
local function refusal(reply)
  return {err = (type(reply) == 'table' and reply.err or tostring(reply)) .. ' script: batch, on @user_script'}
end

local function by_itself(execute, keys, args)
  local ok, reply = pcall(execute, keys, args)
  if ok and (type(reply) ~= 'table' or not reply.err) then return reply end
  return refusal(reply)
end

-- The request that an error belongs to, and a claim that has no TTL yet.
local doing, half_made

-- Grants each free name to its request without a reply, as acquire() would. Returns where the arguments of the rest
-- begin.
local function grant(replies)
  local call, keys, args = call, keys, args
  local at, left = 5, 0
  local count, lease, kept, floor, slack, versions, fresh, token_before, text
  for k = 1, acquires do
    if left == 0 then
      left, count, lease, kept, floor, slack, versions = unpack(args, at, at + 6)
      at, left = at + 7, left + 0
      token_before, text = floor + 0, floor
      -- The token of a name whose counter is missing or smaller.
      fresh = next_token(false, token_before, slack, false, now)
    end
    left = left - 1
    local owner, version = args[at], ''
    at = at + 1
    if versions ~= '' then
      version, at = args[at], at + 1
    end
    local after = ''
    if trusted ~= '' then
      after, at = args[at], at + 1
    end
    if not replies[k] then
      doing = k
      local claim, queue, counter = keys[2 * k - 1], keys[2 * k], keys[2 * acquires + k]
      local token, is_usual = fresh, not is_strange
      if stored[k] then
        local before = counted(stored[k])
        is_usual = before
        if before and (fresh <= before or after ~= '' and after + 0 <= before) then token = before + 1 end
      end
      if is_usual and (are_free or call('EXISTS', claim, queue) == 0) then
        -- The names of a group nearly always get the same token: its text is formatted once.
        if token ~= token_before then
          token_before, text = token, string.format('%.0f', token)
        end
        store_token(call, counter, text, kept)
        half_made = claim
        call('HSET', claim, owner, version == '' and count or count .. ' ' .. version)
        call('PEXPIRE', claim, lease)
        half_made = nil
        replies[k] = token
      else
        replies[k] = by_itself(acquire, {claim, counter, queue}, {owner, count, lease, kept, floor, slack, version, '', after, is_trusted = trusted ~= ''})
      end
    end
  end
  return at
end

-- Looks for each release without a reply whether its owner holds the name. Returns how many claims the batch deletes.
local function find_held(replies, key, at)
  local call, keys, args, ends = call, keys, args, 0
  for k = acquires + renewals + 1, acquires + renewals + releases do
    key, at = key + 1, at + 2
    if not replies[k] then
      doing = k
      local held = call('HMGET', keys[key], 'mode', args[at - 2])
      replies[k] = not held[1] and held[2] and 1 or 0
    end
    if replies[k] == 1 then ends = ends + 1 end
  end
  return ends
end

-- Runs `act` again until each of its requests has a reply.
local function all_of(act, replies, ...)
  while true do
    local ok, result = pcall(act, replies, ...)
    if ok then return result end
    -- A claim without TTL would outlive its owner: half a grant is deleted.
    if half_made then redis.pcall('DEL', half_made) end
    half_made = nil
    if replies[doing] then error(result) end
    replies[doing] = refusal(result)
  end
end

local replies, key = {}, 3 * acquires
local at = acquires == 0 and 5 or all_of(grant, replies)

for k = acquires + 1, acquires + renewals do
  local values = args[at + 4] == 'versions' and 8 or 7
  replies[k] = by_itself(renew, {keys[key + 1], keys[key + 2]}, {unpack(args, at, at + values - 1)})
  key, at = key + 2, at + values
end

local ends = releases == 0 and 0 or all_of(find_held, replies, key, at)
if ends == 0 then return replies end
local ended, first = keys, acquires + renewals
if ends < releases then
  ended = {}
  for k = 1, releases do
    if replies[first + k] == 1 then ended[#ended + 1] = keys[key + k] end
  end
  key = 0
end
local deleted = redis.pcall('DEL', unpack(ended, key + 1, key + ends))
-- The names are free before the messages, and an error of a message undoes nothing.
for k = first + 1, first + releases do
  at = at + 2
  if replies[k] == 1 then
    local told = type(deleted) == 'number' and redis.pcall('PUBLISH', args[at - 1], '0')
    if not told then
      replies[k] = refusal(deleted)
    elseif type(told) == 'table' then
      replies[k] = {1, refusal(told)}
    elseif told ~= 0 then
      replies[k] = told + 3
    end
  end
end
return replies
