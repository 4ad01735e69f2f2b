import java.util.Arrays;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import org.redisson.Redisson;
import org.redisson.api.RedissonClient;
import org.redisson.config.ClusterServersConfig;
import org.redisson.config.Config;

/**
 * One client for each server, Sentinel group ({@code sentinel:NAME;SENTINEL;SENTINEL..}) or cluster ({@code cluster:MODE;NODE;NODE..}, where
 * MODE is the mode of sharded subscriptions). Only the watchdog and the number of connections differ from Redisson's defaults.
 */
final class Clients {
    private final long watchdogMillis;
    private final Map<String, RedissonClient> clients = new ConcurrentHashMap<>();

    Clients(long watchdogMillis) {
        this.watchdogMillis = watchdogMillis;
    }

    RedissonClient of(String address) {
        return clients.computeIfAbsent(address, this::connect);
    }

    /** Sets the mode of sharded subscriptions. Versions before 3.22 have none. */
    private static void choose(ClusterServersConfig servers, String mode) {
        for (var method : servers.getClass().getMethods()) {
            if (method.getName().equals("setShardedSubscriptionMode")) {
                var values = method.getParameterTypes()[0].getEnumConstants();
                var value = Arrays.stream(values).filter(one -> one.toString().equals(mode)).findFirst();
                try {
                    method.invoke(servers, value.orElseThrow());
                } catch (ReflectiveOperationException e) {
                    throw new IllegalStateException(e);
                }
            }
        }
    }

    private RedissonClient connect(String address) {
        var config = new Config();
        config.setLockWatchdogTimeout(watchdogMillis);
        config.setThreads(4);
        config.setNettyThreads(4);
        if (address.startsWith("sentinel:")) {
            var parts = address.substring("sentinel:".length()).split(";");
            config.useSentinelServers()
                    .setMasterName(parts[0])
                    .addSentinelAddress(Arrays.copyOfRange(parts, 1, parts.length))
                    .setScanInterval(200)
                    .setMasterConnectionMinimumIdleSize(2)
                    .setSlaveConnectionMinimumIdleSize(2)
                    .setSubscriptionConnectionMinimumIdleSize(1);
            return Redisson.create(config);
        }
        if (address.startsWith("cluster:")) {
            var parts = address.substring("cluster:".length()).split(";");
            var servers = config.useClusterServers()
                    .addNodeAddress(Arrays.copyOfRange(parts, 1, parts.length))
                    .setScanInterval(200)
                    .setMasterConnectionMinimumIdleSize(2)
                    .setSlaveConnectionMinimumIdleSize(2)
                    .setSubscriptionConnectionMinimumIdleSize(1);
            choose(servers, parts[0]);
            return Redisson.create(config);
        }
        config.useSingleServer()
                .setAddress(address)
                .setConnectionMinimumIdleSize(2)
                .setConnectionPoolSize(32)
                .setSubscriptionConnectionMinimumIdleSize(1)
                .setSubscriptionConnectionPoolSize(32);
        return Redisson.create(config);
    }
}
