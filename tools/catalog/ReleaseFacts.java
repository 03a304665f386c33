// A kafka-clients jar on the class path in, its error codes and (before 2.2) its API versions out, tab separated on stdout.
//
//   java -cp kafka-clients-1.1.1.jar:slf4j-api-1.7.36.jar ReleaseFacts.java
//
//   error  NAME  CODE  RETRIABLE  EXCEPTION      one a constant of Errors; EXCEPTION is "-" where there is none
//   api    KEY   NAME  OLDEST     LATEST         one an API, only where the jar carries no message definitions
//
// Reflection only: the same source runs against every jar from 0.8.2 on, whose classes share names but few methods.

import java.lang.reflect.AccessibleObject;
import java.lang.reflect.Array;
import java.lang.reflect.Method;

public class ReleaseFacts {
    private static final String PROTOCOL = "org.apache.kafka.common.protocol.";

    public static void main(String[] args) throws ReflectiveOperationException {
        StringBuilder out = new StringBuilder();
        errors(out);
        // since 2.2 the jar's own definition files say more than ApiKeys does, and ApiKeys needs generated classes
        if (ReleaseFacts.class.getResource("/common/message/ApiVersionsRequest.json") == null) {
            apis(out);
        }
        System.out.print(out);
    }

    private static void errors(StringBuilder out) throws ReflectiveOperationException {
        Class<?> retriable = Class.forName("org.apache.kafka.common.errors.RetriableException");
        for (Object error : Class.forName(PROTOCOL + "Errors").getEnumConstants()) {
            Object exception = call(error, "exception");
            row(out, "error", ((Enum<?>) error).name(), call(error, "code"),
                    retriable.isInstance(exception), exception == null ? "-" : exception.getClass().getSimpleName());
        }
    }

    private static void apis(StringBuilder out) throws ReflectiveOperationException {
        for (Object api : Class.forName(PROTOCOL + "ApiKeys").getEnumConstants()) {
            int key = ((Number) open(api.getClass().getField("id")).get(api)).intValue();
            Object[] range = range(api, key);
            if (range != null) {
                row(out, "api", key, open(api.getClass().getField("name")).get(api), range[0], range[1]);
            }
        }
    }

    /** Oldest and latest version of an API, or null where the release names the key and has no layout for it. */
    private static Object[] range(Object api, int key) throws ReflectiveOperationException {
        if (has(api.getClass(), "latestVersion")) { // 0.11 to 2.1
            return new Object[] {call(api, "oldestVersion"), call(api, "latestVersion")};
        }
        // before 0.11 the table of schemas is the only thing every release has: a dropped version is a null in it
        Object schemas = ((Object[]) open(Class.forName(PROTOCOL + "Protocol").getField("REQUESTS")).get(null))[key];
        if (schemas == null || Array.getLength(schemas) == 0) {
            return null;
        }
        int oldest = 0;
        while (oldest < Array.getLength(schemas) && Array.get(schemas, oldest) == null) {
            oldest++;
        }
        return new Object[] {oldest, Array.getLength(schemas) - 1};
    }

    private static boolean has(Class<?> type, String method) {
        try {
            type.getMethod(method);
            return true;
        } catch (NoSuchMethodException absent) {
            return false;
        }
    }

    private static Object call(Object target, String name) throws ReflectiveOperationException {
        Method method = target.getClass().getMethod(name);
        return open(method).invoke(target);
    }

    /** Constants with a body are anonymous classes that are not public, so even their public members need opening. */
    private static <T extends AccessibleObject> T open(T member) {
        member.setAccessible(true);
        return member;
    }

    private static void row(StringBuilder out, Object... cells) {
        for (int i = 0; i < cells.length; i++) {
            out.append(i == 0 ? "" : "\t").append(cells[i]);
        }
        out.append('\n');
    }
}
