// A file of cases in, Kafka's own verdict on each out: the generated codec of whichever release is on the class path.
//
//   java -cp CLASSES:JARS Judge CASES VERDICTS
//
//   case     MESSAGE  VERSION  JSON  HEX                     tab separated, one a line; "-" for JSON or HEX is not judged
//   verdict  HEX_FROM_JSON  REWRITTEN_HEX  JSON_FROM_HEX     in the order of the cases
//
// A column that failed holds "!ExceptionClass: message"; what the release does not have is "!absent". No case stops the rest.

import com.fasterxml.jackson.core.JsonGenerator;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

public class Judge {
    private static final String ABSENT = "!absent";
    // not the empty string: some messages take no bytes at all
    private static final String NOT_ASKED = "-";

    // every package that a release of Kafka generates message classes into
    private static final String[] PACKAGES = {
        "org.apache.kafka.common.message.",
        "org.apache.kafka.common.metadata.",
        "org.apache.kafka.coordinator.group.generated.",
        "org.apache.kafka.coordinator.share.generated.",
        "org.apache.kafka.coordinator.transaction.generated.",
        "org.apache.kafka.raft.generated.",
        "org.apache.kafka.server.log.remote.metadata.storage.generated.",
        "kafka.internals.generated.",
    };

    // escaped to ASCII, so that lone surrogates and line separators within strings survive the file
    private static final ObjectMapper JSON = new ObjectMapper().configure(JsonGenerator.Feature.ESCAPE_NON_ASCII, true);
    private static final HexFormat HEX = HexFormat.of();

    private final Map<String, Codec> codecs = new HashMap<>();

    public static void main(String[] args) throws IOException {
        Judge judge = new Judge();
        try (BufferedReader cases = Files.newBufferedReader(Path.of(args[0]));
                BufferedWriter verdicts = Files.newBufferedWriter(Path.of(args[1]))) {
            for (String line = cases.readLine(); line != null; line = cases.readLine()) {
                verdicts.write(judge.verdict(line.split("\t", -1)));
                verdicts.write('\n');
            }
        }
    }

    private String verdict(String[] cells) {
        return attempt(cells, cells[2], Codec::hexFromJson)
                + "\t" + attempt(cells, cells[3], Codec::rewritten)
                + "\t" + attempt(cells, cells[3], Codec::jsonFromHex);
    }

    private interface Work {
        String run(Codec codec, String input, short version) throws Throwable;
    }

    private String attempt(String[] cells, String input, Work work) {
        if (input.equals(NOT_ASKED)) {
            return NOT_ASKED;
        }
        try {
            return work.run(codecs.computeIfAbsent(cells[0], Codec::find), input, Short.parseShort(cells[1]));
        } catch (Throwable thrown) {
            // a Throwable, as older readers allocate what a length says and so run out of memory on a bad frame
            String text = "!" + thrown.getClass().getSimpleName() + ": " + thrown.getMessage();
            return text.replaceAll("\\p{Cntrl}+", " ");
        }
    }

    /** What reflection found of one message; a handle is null where the release lacks it. */
    private record Codec(MethodHandle create, MethodHandle readJson, MethodHandle writeJson, short lowest, short highest) {
        private static final Codec NONE = new Codec(null, null, null, (short) 0, (short) -1);

        /** Requests, responses and headers are generated as NAMEData, everything else as NAME. */
        static Codec find(String message) {
            for (String prefix : PACKAGES) {
                for (String suffix : new String[] {"Data", ""}) {
                    try {
                        Class<?> type = Class.forName(prefix + message + suffix);
                        if (Message.class.isAssignableFrom(type)) {
                            return of(type);
                        }
                    } catch (ClassNotFoundException elsewhere) {
                        // the next package may have it
                    } catch (Throwable broken) {
                        throw new IllegalStateException(prefix + message + suffix, broken);
                    }
                }
            }
            return NONE;
        }

        private static Codec of(Class<?> type) throws Throwable {
            MethodHandles.Lookup lookup = MethodHandles.publicLookup();
            MethodHandle create = lookup.findConstructor(type, MethodType.methodType(void.class))
                    .asType(MethodType.methodType(Message.class));
            Message sample = (Message) create.invokeExact();
            MethodHandle read = null;
            MethodHandle write = null;
            try {
                Class<?> converter = Class.forName(type.getName() + "JsonConverter");
                read = lookup.findStatic(converter, "read", MethodType.methodType(type, JsonNode.class, short.class))
                        .asType(MethodType.methodType(Message.class, JsonNode.class, short.class));
                write = writer(lookup, converter, type)
                        .asType(MethodType.methodType(JsonNode.class, Message.class, short.class));
            } catch (ClassNotFoundException bytesOnly) {
                // the first releases of the coordinator records have no converters
            }
            return new Codec(create, read, write, sample.lowestSupportedVersion(), sample.highestSupportedVersion());
        }

        private static MethodHandle writer(MethodHandles.Lookup lookup, Class<?> converter, Class<?> type)
                throws ReflectiveOperationException {
            try {
                MethodType sized = MethodType.methodType(JsonNode.class, type, short.class, boolean.class);
                return MethodHandles.insertArguments(lookup.findStatic(converter, "write", sized), 2, false);
            } catch (NoSuchMethodException before28) {
                return lookup.findStatic(converter, "write", MethodType.methodType(JsonNode.class, type, short.class));
            }
        }

        private boolean lacks(MethodHandle handle, short version) {
            return handle == null || version < lowest || version > highest;
        }

        String hexFromJson(String json, short version) throws Throwable {
            if (lacks(readJson, version)) {
                return ABSENT;
            }
            return written((Message) readJson.invokeExact(JSON.readTree(json), version), version);
        }

        String rewritten(String hex, short version) throws Throwable {
            return lacks(create, version) ? ABSENT : written(read(hex, version), version);
        }

        String jsonFromHex(String hex, short version) throws Throwable {
            if (lacks(writeJson, version)) {
                return ABSENT;
            }
            return JSON.writeValueAsString((JsonNode) writeJson.invokeExact(read(hex, version), version));
        }

        private Message read(String hex, short version) throws Throwable {
            Message message = (Message) create.invokeExact();
            message.read(new ByteBufferAccessor(ByteBuffer.wrap(HEX.parseHex(hex))), version);
            return message;
        }

        private static String written(Message message, short version) {
            ObjectSerializationCache cache = new ObjectSerializationCache();
            ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
            message.write(new ByteBufferAccessor(buffer), cache, version);
            return HEX.formatHex(buffer.array(), 0, buffer.position());
        }
    }
}
