/* Ends parsing, reading and XPath of libxml2 when their request is stopped.
 *
 *     xmlInitParser();                                        // once
 *     xmlResetLastError();                                    // once in each thread
 *
 *     xmlParserCtxtPtr context = xmlNewParserCtxt();          // in a request
 *     sert_xml_watch(context);
 *     xmlDocPtr document = SERT_XML(xmlCtxtReadMemory(context, text, size, NULL, NULL, options));
 *     while (SERT_XML(xmlTextReaderRead(reader)) == 1) ...
 *     xmlXPathObjectPtr found = sert_xml_xpath(compiled, xpath_context);
 *
 * The callback stops the parser by xmlStopParser, because only the parser can release the lock of its
 * dictionary. The document, the reader and the contexts must be the request's own, and a stop
 * releases them. The last error of the thread outlives the request, so SERT_XML releases its text. */
#ifndef SERT_LIBXML2_H
#define SERT_LIBXML2_H

#include <libxml/SAX2.h>
#include <libxml/parser.h>
#include <libxml/xmlreader.h>
#include <libxml/xpath.h>

#include "sert_calls.h"

/* The value of `call`. The context's own record of the error stays. */
#define SERT_XML(call)                                                                                 \
    __extension__({                                                                                    \
        SERT_mask();                                                                                   \
        __typeof__(call) found_ = (call);                                                              \
        xmlResetLastError();                                                                           \
        SERT_unmask();                                                                                 \
        found_;                                                                                        \
    })

static void sert_xml_element(void *context, const xmlChar *name, const xmlChar *prefix, const xmlChar *uri, int namespaces,
                             const xmlChar **namespace_list, int attributes, int defaulted, const xmlChar **attribute_list) {
    xmlSAX2StartElementNs(context, name, prefix, uri, namespaces, namespace_list, attributes, defaulted, attribute_list);
    if (sert_is_over()) {
        xmlStopParser((xmlParserCtxtPtr)context);
        /* Otherwise the truncated document would be returned. */
        ((xmlParserCtxtPtr)context)->wellFormed = 0;
    }
}

/* Makes the parser ask at each element. It then returns no document if the request is due. With
 * XML_PARSE_RECOVER it returns a truncated one, and `context->errNo` is XML_ERR_USER_STOP. */
static inline void sert_xml_watch(xmlParserCtxtPtr context) {
    context->sax->startElementNs = sert_xml_element;
}

static void sert_xml_no_message(void *unused, xmlErrorPtr error) {
    (void)unused;
    (void)error;
}

/* Operations of the first evaluation. They take some milliseconds. */
#define SERT_XML_OPERATIONS 100000ul

/* Evaluates a compiled expression. Returns NULL if the request is due, or if there is an error; see
 * `context->lastError`.
 *
 * XPath has no callback, but a limit on operations. The first evaluation shows how long they take.
 * If it reaches its limit, the next one has the operations that fit into the time left. */
static inline xmlXPathObjectPtr sert_xml_xpath(xmlXPathCompExprPtr compiled, xmlXPathContextPtr context) {
    unsigned long limit = SERT_XML_OPERATIONS;
    xmlXPathObjectPtr found;
    xmlStructuredErrorFunc report = context->error;
    SERT_mask();
    context->error = sert_xml_no_message;
    for (;;) {
        int64_t before = SERT_left();
        context->opLimit = before == INT64_MAX ? 0 : limit;
        context->opCount = 0;
        xmlResetError(&context->lastError);
        found = xmlXPathCompiledEval(compiled, context);
        int64_t left = SERT_left(), spent = before > left ? before - left : 1;
        if (found || context->lastError.code != XML_XPATH_EXPRESSION_OK + XPATH_OP_LIMIT_EXCEEDED || sert_is_over()) {
            break;
        }
        double fitting = (double)limit * (double)left / (double)spent;
        limit = fitting > SERT_XML_OPERATIONS ? (unsigned long)fitting : SERT_XML_OPERATIONS;
    }
    context->error = report;
    xmlResetLastError();
    SERT_unmask();
    return found;
}

#endif
