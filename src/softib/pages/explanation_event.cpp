// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Asynchronous events of libibverbs [IBA1 11.6.3]: their names and the texts of ibv_event_type_str.
#include "softib/pages/explanation.h"

#include <fmt/format.h>

#include <array>

namespace ib::softib {
namespace {

constexpr const char* kNothing = "Nothing to do.";

struct Event {
  const char* name;
  const char* printed;  // by ibv_event_type_str
  const char* meaning;
  const char* advice;
};

// In the order of enum ibv_event_type.
constexpr std::array kEvents = {
    Event{"IBV_EVENT_CQ_ERR", "CQ error",
          "A completion queue has overrun: more completions came than it holds.",
          "Poll it more often, or create it with as many entries as requests can be outstanding on "
          "all its queue pairs. Destroy it with its queue pairs: it gets no completions any more."},
    Event{"IBV_EVENT_QP_FATAL", "local work queue catastrophic error",
          "A queue pair went into the error state, and no completion can say why: mostly its "
          "completion queue has overrun.",
          "`softib trace` names the cause; size the completion queue for all its queue pairs."},
    Event{"IBV_EVENT_QP_REQ_ERR", "invalid request local work queue error",
          "The peer's request does not fit this queue pair, which is in the error state now.",
          "`softib trace` names request and reason; compare the attributes of both queue pairs."},
    Event{"IBV_EVENT_QP_ACCESS_ERR", "local access violation work queue error",
          "The peer's request named memory that it may not use; this queue pair is in the error "
          "state now.",
          "`softib trace` names the key and the range; check rkey, address, length and access "
          "flags that were sent to the peer."},
    Event{"IBV_EVENT_COMM_EST", "communication established",
          "A message came before this queue pair was in RTS.",
          "Nothing to do, or rdma_notify(id, IBV_EVENT_COMM_EST) while rdma_accept waits for RTU."},
    Event{"IBV_EVENT_SQ_DRAINED", "send queue drained",
          "The queue pair is in SQD, and all that it had begun is done.", kNothing},
    Event{"IBV_EVENT_PATH_MIG", "path migrated", "The connection uses its alternate path now.",
          "Load a new alternate path, if you want one."},
    Event{"IBV_EVENT_PATH_MIG_ERR", "path migration request error",
          "The alternate path cannot be used.", "Check its port, P_Key and LID or GID."},
    Event{"IBV_EVENT_DEVICE_FATAL", "local catastrophic error",
          "The HCA was pulled out, or the fabric has gone down.",
          "Close the device and open it again; `softib status` shows what is left."},
    Event{"IBV_EVENT_PORT_ACTIVE", "port active", "The port is up.", kNothing},
    Event{"IBV_EVENT_PORT_ERR", "port error",
          "The port is down: taken down, without a cable's other end, or its HCA sleeps.",
          "`softib status` shows the ports; `softib port up`, `softib power resume`."},
    Event{"IBV_EVENT_LID_CHANGE", "LID change", "The port has another LID.",
          "Tell it to peers that connect by LID."},
    Event{"IBV_EVENT_PKEY_CHANGE", "P_Key change", "The P_Key table of the port has changed.",
          "Look up the P_Key index again (ibv_query_pkey)."},
    Event{"IBV_EVENT_SM_CHANGE", "SM change", "The subnet manager is another one.", kNothing},
    Event{"IBV_EVENT_SRQ_ERR", "SRQ catastrophic error", "A shared receive queue is in error.",
          "`softib trace`; destroy it with its queue pairs."},
    Event{"IBV_EVENT_SRQ_LIMIT_REACHED", "SRQ limit reached",
          "The shared receive queue has fewer receives than its limit.",
          "Post receives, and set the limit again (ibv_modify_srq): it counts once."},
    Event{"IBV_EVENT_QP_LAST_WQE_REACHED", "last WQE reached",
          "A queue pair with a shared receive queue is in the error state and takes no more "
          "receives.",
          "Destroy the queue pair once its completions are polled."},
    Event{"IBV_EVENT_CLIENT_REREGISTER", "client reregistration",
          "The subnet manager has forgotten multicast memberships and subscriptions.",
          "Join groups again; librdmacm does it by itself."},
    Event{"IBV_EVENT_GID_CHANGE", "GID table change", "The GID table of the port has changed.",
          "Look up the GID index again (ibv_query_gid_table)."},
    Event{"IBV_EVENT_WQ_FATAL", "WQ fatal", "A work queue of a raw packet queue pair is in error.",
          "softib has no such queues; you should not see this."},
};

}  // namespace

std::string explain_async_event(std::string_view word) {
  const std::string wanted = plain_letters(word);
  for (std::size_t i = 0; i < kEvents.size(); ++i) {
    const Event& event = kEvents[i];
    if (wanted != plain_letters(event.name) && wanted != plain_letters(event.printed)) continue;
    const std::string title = fmt::format("asynchronous event {}: {}", i, event.name);
    return card(title, {event.name, event.meaning, event.advice});
  }
  return {};
}

std::vector<std::string_view> async_event_texts() {
  std::vector<std::string_view> texts;
  for (const Event& event : kEvents) {
    texts.emplace_back(event.name);
    texts.emplace_back(event.printed);
  }
  return texts;
}

}  // namespace ib::softib
