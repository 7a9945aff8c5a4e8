// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/pages/manager_state.h"

#include "softib/pages/fabric_state.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace ib::softib {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kCode = static_cast<verbs::control::Code>(verbs::control::SmCode::Sm);

bool is_at_work(const Json& manager) {
  const std::string state = text_of(manager, "state");
  return state == "discovering" || (state == "master" && !manager.value("settled", false));
}

}  // namespace

std::string ask_managers(ControlClient& client, verbs::control::SmAction action,
                         std::uint32_t priority) {
  return client.read_text(kCode, bytes_of(verbs::control::SmIn{action, priority}), kLimitOfAll);
}

void let_managers_follow(ControlClient& client) {
  const verbs::control::SmIn show;
  const Clock::time_point deadline = Clock::now() + std::chrono::seconds(5);
  while (Clock::now() < deadline) {
    const ControlAnswer answer = client.call(kCode, bytes_of(show));
    if (answer.status != Status::Ok) return;  // ports wait for a program's manager
    const Json state = Json::parse(read_fd(answer.file), nullptr, false);
    if (state.is_discarded()) return;
    if (std::ranges::none_of(list_of(state, "managers"), is_at_work)) return;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace ib::softib
