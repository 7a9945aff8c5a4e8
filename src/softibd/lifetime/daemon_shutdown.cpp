// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softibd/lifetime/daemon_shutdown.h"

#include <string>

namespace ib::softib {
namespace {

// The time that the requests of clients may take to end during the teardown.
constexpr Duration kEndTimeLimit = std::chrono::seconds(5);

}  // namespace

void DaemonShutdown::begin() {
  begun_ = true;
  devices_.root().announce_shutdown();
  time_limit_ = loop_.at(loop_.now() + kEndTimeLimit, [this] { give_up(); });
  clients_.empty() ? close_services() : clients_.end_sessions();
}

void DaemonShutdown::on_no_clients() {
  if (begun_) close_services();
}

// Before the devices, whose files they have open.
void DaemonShutdown::close_services() {
  devices_.streams().close([this] {
    const auto done = [](io::Irp&, void* context) {
      static_cast<DaemonShutdown*>(context)->power_off();
    };
    devices_.gsi().close(closing_services_.start(done, this));
  });
}

// The devices go down in order, after all other requests.
void DaemonShutdown::power_off() {
  devices_.tree().shut_down([this] {
    if (const std::string users = devices_.tree().open_devices(); !users.empty()) {
      log_.error(
          "a driver keeps its clients of the access layer open; leaving all the same. Open: " +
          users);
      exit_ = DaemonExit::Stuck;
    }
    verify_ != nullptr ? look_for_leftovers() : loop_.stop();
  });
}

void DaemonShutdown::look_for_leftovers() {
  verify_->look_for_leftovers([this](std::uint64_t findings) {
    if (findings != 0 && exit_ == DaemonExit::Ended) exit_ = DaemonExit::Findings;
    loop_.stop();
  });
}

void DaemonShutdown::give_up() {
  log_.error(
      clients_.empty()
          ? "a driver does not answer a PnP or power request, so the devices cannot go down in "
            "order (`softib devices` shows where, while softibd runs); leaving all the same"
          : count_of(clients_.size(), "connection") +
                " did not end: a driver keeps requests; leaving without them");
  if (verify_ != nullptr) {
    for (const std::string& line : verify_->under_way()) log_.error(line);
  }
  exit_ = DaemonExit::Stuck;
  loop_.stop();
}

}  // namespace ib::softib
