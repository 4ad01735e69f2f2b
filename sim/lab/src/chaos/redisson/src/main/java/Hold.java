import com.fasterxml.jackson.databind.JsonNode;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.redisson.Redisson;
import org.redisson.api.RLock;
import org.redisson.api.RedissonClient;

/**
 * One acquisition of one name, and the hold that it wins.
 *
 * <p>Redisson does not tell a holder until when it holds a lock. A holder that must know can do two things, and this
 * client does both. Its lease ends at the earliest one lease after it <em>asked</em> for the lock. And if the server says
 * that the lock is the holder's own, the remaining time that the server stated just before counts from when the holder
 * asked for it. From each, 1 % is subtracted for clocks at different rates, and 2 ms because Redis counts whole ones.
 * The deadline is on {@code System.nanoTime()}, which continues while the process is stopped.
 */
final class Hold {
    private static final long COUNTING = 2_000_000;

    private final Reports reports;
    private final Settings settings;
    private final RedissonClient redisson;
    private final int number;
    private final int name;
    private final String access;
    private final boolean isRenewed;
    private final RLock lock;
    /** Until when the client holds the lock, as far as it knows. */
    private long deadline;

    Hold(Reports reports, Settings settings, RedissonClient redisson, int number, String suffix) {
        this.reports = reports;
        this.settings = settings;
        this.redisson = redisson;
        this.number = number;
        name = settings.name();
        var isShared = settings.kind.equals("read-write");
        access = !isShared ? "alone" : settings.chance(0.6) ? "read" : "write";
        // Others extend the claim of a reader's name, so a reader cannot learn its own remaining time from the server.
        isRenewed = !access.equals("read") && settings.chance(settings.renewedShare);
        var key = "lock-" + name + suffix;
        lock = switch (access) {
            case "read" -> redisson.getReadWriteLock(key).readLock();
            case "write" -> redisson.getReadWriteLock(key).writeLock();
            default -> settings.kind.equals("fair") ? redisson.getFairLock(key) : redisson.getLock(key);
        };
    }

    /** Acquires the lock, works, and releases the lock. */
    void turn() {
        try {
            var invoked = reports.now();
            if (!acquire()) {
                return;
            }
            ask();
            // One reading is both the beginning of the belief, because it was made after the lock was won, and a time
            // at which the lock was held, because it was made before the check.
            var won = reports.now();
            var isHeld = isHeld();
            reports.say("won", new Won(number, List.of(new WonName(name)), owner(), invoked, won, access, isHeld ? won : null));
            if (isHeld) {
                inside();
            }
            reports.say("left", Map.of("hold", number, "at", reports.now()));
            release();
        } catch (InterruptedException ended) {
            // Only an acquisition is interrupted, and that has handled it.
        }
    }

    /** Waits for the lock. Returns whether it was won. */
    private boolean acquire() throws InterruptedException {
        if (!reports.mayWait()) {
            return false;
        }
        var isWon = false;
        try {
            isWon = access.equals("read") ? poll() : await();
        } catch (InterruptedException cancelled) {
            // The command has cancelled the operation. The server may have granted the lock in the same moment.
            giveBack();
        } catch (RuntimeException error) {
            reports.waitsNoMore();
            reports.failed("lock", error);
            Thread.sleep(20);
        } finally {
            reports.waitsNoMore();
        }
        return isWon;
    }

    private boolean await() throws InterruptedException {
        var asked = System.nanoTime();
        if (isRenewed) {
            lock.lockInterruptibly();
        } else {
            lock.lockInterruptibly(settings.leaseMillis, TimeUnit.MILLISECONDS);
        }
        deadline = after(asked, settings.leaseMillis);
        return true;
    }

    /** Tries until the lock is won, so that the lease counts from the try that won it. */
    private boolean poll() throws InterruptedException {
        while (true) {
            var asked = System.nanoTime();
            if (lock.tryLock(0, settings.leaseMillis, TimeUnit.MILLISECONDS)) {
                deadline = after(asked, settings.leaseMillis);
                return true;
            }
            Thread.sleep(10);
        }
    }

    /** The earliest end of a claim that had this much left at a time that is not before {@code from}. */
    private static long after(long from, long millis) {
        var nanos = millis * 1_000_000;
        return from + nanos - nanos / 100 - COUNTING;
    }

    /**
     * Asks the server for the remaining time, and then whether the lock is this client's. No other client can extend
     * this hold, and no other hold has this owner. So if the lock is this client's afterwards, it was before, and the
     * remaining time was this hold's.
     */
    private void ask() {
        if (access.equals("read")) {
            return;
        }
        try {
            var asked = System.nanoTime();
            var left = lock.remainTimeToLive();
            if (!lock.isHeldByCurrentThread()) {
                deadline = asked;
            } else if (0 < left && deadline - after(asked, left) < 0) {
                deadline = after(asked, left);
            }
        } catch (RuntimeException error) {
            // Without an answer, the deadline stays.
            reports.failed("ask", error);
        }
    }

    private boolean isHeld() {
        return System.nanoTime() - deadline < 0;
    }

    /** Reads, works, and writes the result, unless the lock is lost. */
    private void inside() throws InterruptedException {
        JsonNode stands = access.equals("read") ? null : reports.ask("read", Map.of("hold", number, "name", name, "token", 0));
        var stay = settings.stay();
        for (var check = 0; check < settings.checks; check++) {
            Settings.sleep(stay / settings.checks);
            if (isRenewed) {
                ask();
            }
            // The clock is read before the check. If the process is stopped between the two, the lock was held at this
            // time.
            var at = reports.now();
            if (!isHeld()) {
                return;
            }
            reports.say("believed", Map.of("hold", number, "at", at));
        }
        if (stands != null && stands.has("stands")) {
            var read = stands.get("stands");
            reports.ask("write", Map.of("hold", number, "name", name, "token", 0, "read_at", read.get("at").asLong(),
                    "count", read.get("count").asLong() + 1));
        }
    }

    private void release() {
        try {
            lock.unlock();
        } catch (RuntimeException error) {
            reports.failed("unlock", error);
        }
    }

    /** Releases the lock if a cancelled acquisition has won it. */
    private void giveBack() {
        try {
            if (lock.isHeldByCurrentThread()) {
                lock.unlock();
            }
        } catch (RuntimeException error) {
            reports.failed("unlock", error);
        }
    }

    private String owner() {
        return ((Redisson) redisson).getId() + ":" + Thread.currentThread().getId();
    }

    /** A message of a hold that was won. Redisson's plain locks have no tokens. */
    private record Won(
            int hold, String kind, List<WonName> names, String owner, long invoked, long won, String access, Long believed) {
        Won(int hold, List<WonName> names, String owner, long invoked, long won, String access, Long believed) {
            this(hold, "lock", names, owner, invoked, won, access, believed);
        }
    }

    private record WonName(int name, long token) {
        WonName(int name) {
            this(name, 0);
        }
    }
}
