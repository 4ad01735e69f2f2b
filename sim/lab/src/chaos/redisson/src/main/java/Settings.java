import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.Random;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.Config;
import org.redisson.config.ConstantDelay;

/** What the command tells a client: the plan of the storm, and how to reach the server. */
final class Settings {
    final String kind;
    /** How much of its holds the watchdog renews: 0 to 1. */
    final double renewedShare;
    final long leaseMillis;
    final int checks;
    private final int names;
    private final long thinkMin;
    private final long thinkMax;
    private final long holdMin;
    private final long holdMax;
    private final int callMillis;
    private final int port;
    private final Random random;

    Settings(JsonNode told) {
        var plan = told.get("plan");
        var workload = plan.get("workload");
        var scale = told.get("scale").asLong();
        kind = workload.get("kind").asText();
        renewedShare = switch (workload.get("watchdog").asText()) {
            case "on" -> 1;
            case "half" -> 0.5;
            default -> 0;
        };
        leaseMillis = nanos(workload.get("lease")) * scale / 1_000_000;
        checks = Math.max(workload.get("checks").asInt(), 2) * 2;
        names = Math.max(workload.get("names").asInt(), 1);
        thinkMin = nanos(workload.get("think_min")) * scale;
        thinkMax = nanos(workload.get("think_max")) * scale;
        holdMin = nanos(workload.get("hold_min")) * scale;
        holdMax = nanos(workload.get("hold_max")) * scale;
        var network = plan.get("network");
        callMillis = (int) (nanos(network.get("call_timeout")) * scale / 1_000_000);
        port = told.get("ports").get(0).asInt();
        var process = told.get("process");
        var stream = process.get("client").asLong() << 16 | process.get("restarts").asLong();
        random = new Random(plan.get("seed").asLong() * 1_000_003 + stream);
    }

    /** Connects to the server. Only times and the numbers of connections differ from Redisson's defaults. */
    RedissonClient connect() {
        var config = new Config();
        config.setLockWatchdogTimeout(leaseMillis);
        config.setFairLockWaitTimeout(leaseMillis);
        config.setThreads(2);
        config.setNettyThreads(2);
        config.useSingleServer()
                .setAddress("redis://127.0.0.1:" + port)
                .setTimeout(callMillis)
                // A JVM that has just started needs a second for its first connection.
                .setConnectTimeout(10 * callMillis)
                .setSubscriptionTimeout(3 * callMillis)
                .setPingConnectionInterval(3 * callMillis)
                .setRetryAttempts(2)
                .setRetryDelay(new ConstantDelay(Duration.ofMillis(callMillis / 3)))
                .setConnectionMinimumIdleSize(1)
                .setConnectionPoolSize(4)
                .setSubscriptionConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(2);
        return Redisson.create(config);
    }

    long think() {
        return between(thinkMin, thinkMax);
    }

    /** How long to stay inside: usually up to an eighth of the longest stay, in a tenth of cases up to all of it. */
    long stay() {
        var shorter = Math.max(holdMax / 8, holdMin);
        return chance(0.1) ? between(shorter, holdMax) : between(holdMin, shorter);
    }

    int name() {
        return random.nextInt(names);
    }

    boolean chance(double share) {
        return random.nextDouble() < share;
    }

    private long between(long min, long max) {
        return min + (long) (random.nextDouble() * Math.max(max - min, 0));
    }

    static void sleep(long nanos) throws InterruptedException {
        Thread.sleep(nanos / 1_000_000, (int) (nanos % 1_000_000));
    }

    /** Reads a time of a plan, for example {@code 1.5ms}. */
    private static long nanos(JsonNode time) {
        var text = time.asText();
        var unit = text.replaceAll("[0-9.]", "");
        var number = Double.parseDouble(text.substring(0, text.length() - unit.length()));
        return Math.round(number * switch (unit) {
            case "s" -> 1e9;
            case "ms" -> 1e6;
            case "us" -> 1e3;
            case "ns" -> 1;
            default -> throw new IllegalArgumentException("not a time: " + text);
        });
    }
}
