// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Mistakes that leave a program waiting: what each looks like from outside, and the call that is
// missing.
#include "softib/pages/resources_page.h"

#include <fmt/format.h>

#include <cstdint>

namespace ib::softib {
namespace {

bool is_true(const Json& object, const char* key) {
  return object.is_object() && object.value(key, Json(false)) == true;
}

std::string count_text(std::uint64_t n, const char* noun) {
  return fmt::format("{} {}{}", n, noun, n == 1 ? "" : "s");
}

std::uint64_t unread_events(const Json& program, const std::string& channel) {
  for (const Json& one : list_of(program, "channels")) {
    if (text_of(one, "channel") == channel) return number_of(one, "unread_events");
  }
  return 0;
}

// A queue with a channel whose completions bring no event.
std::string arming_hint(const Json& program, const Json& cq) {
  const std::uint64_t unpolled = number_of(cq, "unpolled");
  const std::string armed = text_of(cq, "armed");
  const std::string channel = text_of(cq, "channel", "");
  if (unpolled == 0 || channel.empty() || armed == "any") return {};
  if (unread_events(program, channel) != 0) return {};  // the event is there
  const std::string what =
      fmt::format("CQ {} has {} to poll", text_of(cq, "cq"), count_text(unpolled, "completion"));
  if (armed == "solicited") {
    return what +
           ", none of them solicited, and it is armed for solicited ones only: the sender sets "
           "IBV_SEND_SOLICITED, or this side arms with solicited_only 0";
  }
  if (!is_true(cq, "was_armed")) {
    return what + fmt::format(
                      " and was never armed, so that channel {} gets no event: call "
                      "ibv_req_notify_cq before ibv_get_cq_event",
                      channel);
  }
  return what + fmt::format(
                    " and is not armed, so that channel {} gets no event for them: call "
                    "ibv_req_notify_cq after each event, then poll until it is empty",
                    channel);
}

std::string fill_hint(const Json& cq) {
  if (is_true(cq, "overrun")) {
    return fmt::format(
        "CQ {} has overrun: more completions came than its {} entries hold; poll it "
        "sooner, or create it larger",
        text_of(cq, "cq"), text_of(cq, "entries"));
  }
  const std::uint64_t unpolled = number_of(cq, "unpolled");
  if (unpolled == 0 || unpolled < number_of(cq, "entries")) return {};
  return fmt::format("CQ {} is full: the next completion overruns it; poll it (ibv_poll_cq)",
                     text_of(cq, "cq"));
}

// Sends were carried out, but their queue has never had a completion of anything.
std::string signal_hint(const Json& program, const Json& qp) {
  const std::uint64_t sent = number_of(qp, "sent_messages");
  if (sent == 0 || !qp.contains("send_cq")) return {};
  for (const Json& cq : list_of(program, "cq")) {
    if (text_of(cq, "cq") != text_of(qp, "send_cq") || number_of(cq, "completions") != 0) continue;
    return fmt::format(
        "QP {} has carried out {}, and its send CQ {} has never had a completion: "
        "none was signaled; set IBV_SEND_SIGNALED in one request of {} at least, "
        "or sq_sig_all",
        text_of(qp, "qpn"), count_text(sent, "request"), text_of(qp, "send_cq"),
        text_of(qp, "max_send_wr"));
  }
  return {};
}

std::string channel_hint(const Json& channel) {
  const std::uint64_t unread = number_of(channel, "unread_events");
  if (unread == 0) return {};
  return fmt::format(
      "channel {} has {} that the program has not read: ibv_get_cq_event returns at "
      "once",
      text_of(channel, "channel"), count_text(unread, "event"));
}

std::string acknowledgement_hint(const Json& program) {
  const std::uint64_t count = number_of(program, "unacknowledged_events");
  if (count == 0) return {};
  return fmt::format(
      "ibv_destroy_cq, ibv_destroy_qp or ibv_destroy_srq waits until {} {} "
      "acknowledged: call ibv_ack_cq_events or ibv_ack_async_event for each event "
      "that was got",
      count_text(count, "event"), count == 1 ? "is" : "are");
}

}  // namespace

std::vector<std::string> hints_of(const Json& program) {
  std::vector<std::string> hints;
  const auto add = [&hints](std::string hint) {
    if (!hint.empty()) hints.push_back(std::move(hint));
  };
  add(acknowledgement_hint(program));
  for (const Json& cq : list_of(program, "cq")) {
    add(fill_hint(cq));
    add(arming_hint(program, cq));
  }
  for (const Json& qp : list_of(program, "qp")) add(signal_hint(program, qp));
  for (const Json& channel : list_of(program, "channels")) add(channel_hint(channel));
  return hints;
}

}  // namespace ib::softib
