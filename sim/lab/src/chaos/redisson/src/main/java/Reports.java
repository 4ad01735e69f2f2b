import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * The connection to the command: lines of JSON in both directions, as in message.rs.
 *
 * <p>A JVM cannot read the clock of the history, {@code CLOCK_MONOTONIC_RAW}. So clients ask the command for its
 * reading. The reading is made after the question was sent and before the answer is received. Therefore what happened
 * before the question happened before the reading, and what happens after the answer happens after the reading:
 * exactly as if the client had read the clock itself at some time in between. No clocks are converted, so their
 * offsets and rates do not matter, nor does it matter how long the command takes or how long the client is stopped.
 */
final class Reports {
    private final ObjectMapper json = new ObjectMapper();
    private final BufferedReader lines;
    private final OutputStream out;
    private final BlockingQueue<JsonNode> answers = new LinkedBlockingQueue<>();
    private final Map<String, Integer> told = new HashMap<>();
    private volatile boolean isOver;
    /** The thread that waits for a lock, if one does. Guarded by this object's monitor. */
    private Thread waiting;

    private Reports(Socket socket) throws IOException {
        lines = new BufferedReader(new InputStreamReader(socket.getInputStream(), StandardCharsets.UTF_8));
        out = socket.getOutputStream();
    }

    static Reports open(int port) throws IOException {
        var socket = new Socket(InetAddress.getLoopbackAddress(), port);
        socket.setTcpNoDelay(true);
        return new Reports(socket);
    }

    void hello(int client, int restarts) {
        say("hello", Map.of("client", client, "restarts", restarts));
    }

    JsonNode first() throws IOException {
        return json.readTree(lines.readLine());
    }

    /** Begins to receive orders and answers. The process ends when the command ends. */
    void listen() {
        var listener = new Thread(() -> {
            try {
                for (var line = lines.readLine(); line != null; line = lines.readLine()) {
                    hear(json.readTree(line));
                }
            } catch (IOException ended) {
                // The command has ended.
            }
            Runtime.getRuntime().halt(0);
        });
        listener.setDaemon(true);
        listener.start();
    }

    private void hear(JsonNode line) {
        switch (line.asText()) {
            case "cancel" -> cancel();
            case "stop" -> {
                isOver = true;
                cancel();
            }
            default -> answers.add(line);
        }
    }

    boolean isOver() {
        return isOver;
    }

    private synchronized void cancel() {
        if (waiting != null) {
            waiting.interrupt();
        }
    }

    /** Allows orders to interrupt the thread. Returns whether it may wait for a lock: the run may be over. */
    synchronized boolean mayWait() {
        waiting = isOver ? null : Thread.currentThread();
        return !isOver;
    }

    /** Orders no longer interrupt the thread, and none has. */
    synchronized void waitsNoMore() {
        waiting = null;
        Thread.interrupted();
    }

    /** Sends a message. The process ends if the command has ended. */
    synchronized void say(String what, Object content) {
        try {
            var line = json.writeValueAsString(content == null ? what : Map.of(what, content)) + "\n";
            out.write(line.getBytes(StandardCharsets.UTF_8));
        } catch (IOException ended) {
            Runtime.getRuntime().halt(0);
        }
    }

    JsonNode ask(String what, Object content) throws InterruptedException {
        say(what, content);
        return answers.take();
    }

    /** A reading of the history's clock, made during this call. */
    long now() throws InterruptedException {
        return ask("now", null).get("now").get("at").asLong();
    }

    /** Reports an error the first time and then every tenth time. */
    void failed(String action, Throwable error) {
        var text = action + ": " + error.getClass().getSimpleName() + " " + error.getMessage();
        // Addresses, identities and times differ each time.
        var same = text.replaceAll("@[0-9a-f]+.*", "").replaceAll("[0-9a-f]{8}-[0-9a-f-]{27}|[0-9]|\\s+", " ");
        var kind = "Redisson, " + same.replaceAll(" +", " ");
        kind = kind.substring(0, Math.min(kind.length(), 160));
        var times = told.merge(kind, 1, Integer::sum);
        if (times == 1 || times % 10 == 0) {
            say("failed", kind);
        }
    }
}
