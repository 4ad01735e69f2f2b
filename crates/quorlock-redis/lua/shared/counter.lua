-- The token counter of a name: what may stand there, which token comes next, and how long it is kept. After clock.lua.
-- A function costs each call that defines it, so there is none for what is only said.

-- What a reply says whose counter is something else. Beyond 2^53 a number of Lua is no longer exact.
local NO_COUNTER = 'WRONGTYPE the token counter holds no number below 2^53'

-- The number that stands in a counter, or nothing.
local function counted(text)
  local number = tonumber(text)
  return number and number < 9007199254740992 and number
end

-- The token of a claim, which never goes back: the one that a hold carries along, or, with a slack, a new one. The floor of
-- that is the client's clock, believed as far as the slack allows by this server's. 'stored' is what stands in the counter,
-- 'now' the server's time if it is known already.
local function next_token(stored, asked, slack, yours, now)
  if slack == '' then
    if stored and stored > asked then return stored end
    return asked
  end
  -- A resent request gets the value that it was given.
  if yours and stored then return stored end
  now, slack = now or server_now(), slack + 0
  local token = math.max(now - slack, math.min(asked, now + slack))
  if stored and stored >= token then token = stored + 1 end
  return token
end

-- Writes the token's text; unused, it is kept for so many ms, for ever if that is '0'. An error is raised, or returned if
-- 'call' is redis.pcall.
local function store_token(call, counter, text, kept)
  if kept == '0' then return call('SET', counter, text) end
  return call('SET', counter, text, 'PX', kept)
end

-- Keeps the counter of a claim that goes on for so many ms. It is written when it is lower than the hold's token, or when half of
-- the time for which it is kept is over: a hold of an hour is renewed hundreds of times, and nothing changes. In half of that time,
-- unless it is shorter, the claim ends before the counter does.
local function carry_token(call, counter, stored, token, kept, lease)
  if stored == token then
    local left = call('PTTL', counter)
    if kept == '0' and left == -1 then return end
    if kept ~= '0' and lease * 2 <= kept + 0 and kept + 0 <= left * 2 then return end
  end
  store_token(call, counter, string.format('%.0f', token), kept)
end
