// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// `softib explain`: completion statuses, causes and refusals in words, with the remedy.
#pragma once

#include "verbs/control.h"
#include "verbs/explanation.h"
#include "verbs/post_refusal.h"
#include "verbs/types.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ib::softib {

using verbs::explain;
using verbs::Explanation;

Explanation explain(verbs::control::PostRefusal why);
// The refusals of a call ("ibv_post_send"); of all calls, if it is empty.
std::vector<verbs::control::PostRefusal> refusals_of(std::string_view call);
// By name in any spelling ("NoReceive", "no_receive").
std::optional<verbs::control::Cause> find_cause(std::string_view name);

// The whole answer to `softib explain WORD`: a number is a completion status; a name in any
// spelling ("IBV_WC_RETRY_EXC_ERR", "retry exc err", "NoReceive"), "vendor_err 14" or "cause 14"
// are accepted, and so are the name of a call that refuses requests and the words of
// explain_connection(). Returns an empty text for other words.
std::string explain_word(std::string_view word);

// All that can be explained in a line that a program has printed: names, the texts of
// ibv_wc_status_str, ibv_event_type_str and strerror, "status 12", "syndrom 0x10". Empty: nothing.
std::string explain_line(std::string_view line);
// The names in a line that explain_word() explains; everyday words are none.
std::vector<std::string> names_in(std::string_view line);

// The texts of ibv_wc_status_str, with those of statuses that softib never gives.
std::vector<std::string_view> wc_status_texts();

// All names, for the error about an unknown one.
std::string known_words();

// explanation_connection.cpp: events and errors of librdmacm, reasons of the communication manager,
// statuses of the subnet administrator. "RDMA_CM_EVENT_REJECTED, error 8", "event 8", "reason 8",
// "errno 110", "-110", "SA status 0x300", or a name.
std::string explain_connection(std::string_view word);
std::string known_connection_words();

// explanation_event.cpp: "IBV_EVENT_PORT_ERR", "port error".
std::string explain_async_event(std::string_view word);
std::vector<std::string_view> async_event_texts();  // names, and texts of ibv_event_type_str

// explanation_errno.cpp: "ENOMEM", "Cannot allocate memory", "errno 12", "-12".
std::string explain_errno(std::string_view word);
std::vector<std::string_view> errno_texts();

// explanation_stream.cpp: a line of the trace, "TCP to 127.77.0.2:5000 stays TCP: ...". Returns an
// empty text for other lines.
std::string explain_stream(std::string_view line);

// Letters and digits in lower case: "IBV_WC_RETRY_EXC_ERR" and "retry exc err" are the same word.
std::string plain_letters(std::string_view text);
// Nothing unless the text is a number, decimal or with 0x.
std::optional<std::uint32_t> number_in(std::string_view text);
std::string card(const std::string& title, const Explanation& it);

}  // namespace ib::softib
