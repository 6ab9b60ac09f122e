// The recipe for libxml2: the parser, the reader and XPath.
#include "recipes.h"

#include "sert_libxml2.h"

using namespace recipes;

namespace {

std::string document(int elements) {
    std::string text = "<list>";
    for (int i = 0; i < elements; i++) text += "<item n='" + std::to_string(i) + "'>some &amp; text</item>";
    return text + "</list>";
}

int size_of(const std::string &text) { return static_cast<int>(text.size()); }
volatile bool parsed, was_told;

// What a worker thread does before its first request.
void prepare() {
    xmlInitParser();
    xmlResetLastError();
}

// Parses as sert_libxml2.h describes, again and again. The request does not free its documents.
void parse_for_ever(const std::string &text) {
    for (;;) {
        xmlParserCtxtPtr context = xmlNewParserCtxt();
        sert_xml_watch(context);
        SERT_mask();
        parsed = SERT_XML(xmlCtxtReadMemory(context, text.data(), size_of(text), nullptr, nullptr, 0)) != nullptr;
        was_told = SERT_checkpoint() && context->disableSAX;
        SERT_unmask();
    }
}

long count_items(const std::string &text) {
    xmlParserCtxtPtr context = xmlNewParserCtxt();
    sert_xml_watch(context);
    xmlDocPtr tree = SERT_XML(xmlCtxtReadMemory(context, text.data(), size_of(text), nullptr, nullptr, 0));
    CHECK(tree);
    xmlXPathContextPtr xpath = xmlXPathNewContext(tree);
    xmlXPathCompExprPtr compiled = xmlXPathCompile(BAD_CAST "count(//item)");
    xmlXPathObjectPtr found = sert_xml_xpath(compiled, xpath);
    CHECK(found);
    return static_cast<long>(found->floatval);
}

void works_again() {
    std::string text = document(1000);
    static long items;
    next_request([&] { items = count_items(text); });
    CHECK(items == 1000);
}

void without_the_hook_a_stop_waits_for_the_parser() {
    prepare();
    std::string text = document(300000);
    start_library(granted(5, 5));
    CHECK(request([&] {
              parsed = xmlReadMemory(text.data(), size_of(text), nullptr, nullptr, 0) != nullptr;
              for_ever();
          }) == SERT_RAN_TOO_LONG);
    CHECK(parsed);
    CHECK(stats().gated + stats().locked > 0);
}

void a_stopped_parser_leaves_nothing() {
    prepare();
    std::string text = document(300000);
    start_library(granted(5, 5));
    stops_leave_nothing([&] { parse_for_ever(text); });
    CHECK(!parsed && was_told);
    works_again();
}

void a_stop_after_an_error_leaves_the_thread_without_it() {
    prepare();
    start_library(granted(5, 5));
    xmlSetStructuredErrorFunc(nullptr, sert_xml_no_message);
    for (int i = 0; i < 20; i++) {
        CHECK(request([] {
                  SERT_XML(xmlReadMemory("<open>", 6, nullptr, nullptr, 0));
                  for_ever();
              }) == SERT_RAN_TOO_LONG);
        // The last error would be read and freed here.
        const xmlError *error = xmlGetLastError();
        CHECK(error == nullptr || error->message == nullptr);
    }
    works_again();
}

void a_stopped_reader_leaves_nothing() {
    prepare();
    std::string text = document(300000);
    start_library(granted(5, 5));
    stops_leave_nothing([&] {
        for (;;) {
            xmlTextReaderPtr reader = xmlReaderForMemory(text.data(), size_of(text), nullptr, nullptr, 0);
            while (SERT_XML(xmlTextReaderRead(reader)) == 1) {}
        }
    });
    works_again();
}

// Each item looks at all items: twice, and three times, as deep.
const char *const SLOW = "count(//item[count(//item[.='x'])>count(//item[.='y'])])";
const char *const SLOWER = "count(//item[count(//item[count(//item[.='x'])>count(//item[.='y'])])])";

void without_the_hook_a_stop_waits_for_xpath() {
    prepare();
    std::string text = document(500);
    start_library(granted(2, 2));
    static volatile bool found;
    CHECK(request([&] {
              xmlDocPtr tree = xmlReadMemory(text.data(), size_of(text), nullptr, nullptr, 0);
              found = xmlXPathEval(BAD_CAST SLOW, xmlXPathNewContext(tree)) != nullptr;
              for_ever();
          }) == SERT_RAN_TOO_LONG);
    CHECK(found);
}

void a_stopped_xpath_leaves_nothing() {
    prepare();
    std::string text = document(3000);
    start_library(granted(20, 20));
    stops_leave_nothing([&] {
        xmlDocPtr tree = SERT_XML(xmlReadMemory(text.data(), size_of(text), nullptr, nullptr, 0));
        sert_xml_xpath(xmlXPathCompile(BAD_CAST SLOWER), xmlXPathNewContext(tree));
        CHECK(!"it has an end");
    });
    works_again();
}

void an_error_of_xpath_is_told() {
    prepare();
    std::string text = document(10);
    start_library(granted(60000, 60000));
    static int code;
    CHECK(request([&] {
              xmlDocPtr tree = SERT_XML(xmlReadMemory(text.data(), size_of(text), nullptr, nullptr, 0));
              xmlXPathContextPtr context = xmlXPathNewContext(tree);
              CHECK(sert_xml_xpath(xmlXPathCompile(BAD_CAST "no-such-function()"), context) == nullptr);
              code = context->lastError.code;
          }) == 0);
    CHECK(code == XML_XPATH_EXPRESSION_OK + XPATH_UNKNOWN_FUNC_ERROR);
}

}  // namespace

int main(int argc, char **argv) {
    return main_of(argc, argv,
                   {TEST("waits", without_the_hook_a_stop_waits_for_the_parser),
                    TEST("parser", a_stopped_parser_leaves_nothing),
                    TEST("error", a_stop_after_an_error_leaves_the_thread_without_it),
                    TEST("reader", a_stopped_reader_leaves_nothing),
                    TEST("xpath-waits", without_the_hook_a_stop_waits_for_xpath),
                    TEST("xpath", a_stopped_xpath_leaves_nothing), TEST("xpath-error", an_error_of_xpath_is_told)});
}
