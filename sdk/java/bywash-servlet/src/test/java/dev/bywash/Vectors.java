package dev.bywash;

import com.google.gson.JsonElement;
import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** The files of sdk/conformance. */
final class Vectors {
    private Vectors() {}

    static List<JsonObject> read(String file, String key) throws IOException {
        String text = Files.readString(Path.of("../../conformance", file));
        return JsonParser.parseString(text).getAsJsonObject().getAsJsonArray(key).asList().stream()
                .map(JsonElement::getAsJsonObject)
                .toList();
    }

    static String text(JsonElement element) {
        return element.isJsonNull() ? null : element.getAsString();
    }

    static List<String> texts(JsonElement array) {
        return array.getAsJsonArray().asList().stream().map(JsonElement::getAsString).toList();
    }
}
