// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The loop: sleep until something comes, then one turn over all interfaces. softib-net calls run()
// in the process of the node; it ends with the network or with softibd.
#include "ipoib/driver.h"

#include "ipoib/report.h"
#include "linux/client/client_host.h"
#include "linux/client/client_socket.h"
#include "linux/process/client_handle.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <utility>

namespace ib::ipoib::driver {

namespace {

// A program that waits for the network is not held up longer by a subnet without a manager.
constexpr Duration kPatience = std::chrono::seconds(3);
constexpr Duration kLongestSleep = std::chrono::seconds(60);
constexpr std::uint32_t kMostEvents = 32;

}  // namespace

DriverOptions IpoibDriver::options_of(const os::net::NodePlace& place) {
  DriverOptions options;
  options.connected_mode = place.connected_mode;
  options.capture = os::client_host().setting("SOFTIB_IPOIB_CAPTURE");
  return options;
}

IpoibDriver::~IpoibDriver() = default;

Instant IpoibDriver::now() const {
  return os::client_host().now();
}

template <class Do>
void IpoibDriver::for_each(Do&& what) const {
  for (const auto& adapter : adapters_) {
    for (const auto& interface : adapter->interfaces()) what(*interface);
  }
}

Status IpoibDriver::start(os::net::NodeNetwork& network, std::string& reason) {
  network_ = &network;
  started_ = now();
  IB_CHECK(events_.open());
  if (const Status watching = report_.open(); watching != Status::Ok) {
    reason = "the kernel does not say when addresses change (rtnetlink)";
    return watching;
  }
  // The connections of the user HCA are made to the softibd that the environment names. This
  // process has no other thread yet.
  if (!network.place().socket.empty())
    ::setenv(os::kSocketVariable, network.place().socket.c_str(), 1);
  user::ProcessOptions options;
  options.node = network.place().node;
  options.program = "softib-net";
  options.ca_events = true;
  IB_TRY(process, user::Process::attach(os::client_host(), options, events_, reason));
  process_ = std::move(process);
  const auto fail = [&reason](Status status) {
    reason = user::last_reason().empty() ? status_text(status) : user::last_reason();
    return status;
  };
  auto completions = process_->create_channel();
  if (!completions) return fail(completions.error());
  completions_ = *std::move(completions);
  auto services = user::ServiceChannel::connect(*process_);
  if (!services) return fail(services.error());
  services_ = *std::move(services);
  IB_CHECK(make_poll(reason));
  const auto& info = process_->info();
  for (std::uint32_t i = 0; i < std::min<std::size_t>(info.ca_count, info.cas.size()); ++i) {
    open_adapter(info.cas[i].node_guid);
  }
  return Status::Ok;
}

Status IpoibDriver::make_poll(std::string& reason) {
  poll_ = os::own_descriptor(::epoll_create1(EPOLL_CLOEXEC));
  for (const int descriptor : {network_->events(), events_.descriptor(), services_->descriptor(),
                               completions_->fd(), report_.descriptor()}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = descriptor;
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, descriptor, &event) == 0) continue;
    reason = "epoll refuses a descriptor";
    return Status::IoError;
  }
  return Status::Ok;
}

void IpoibDriver::open_adapter(std::uint64_t guid) {
  for (const auto& adapter : adapters_) {
    if (adapter->guid() == guid) return;
  }
  const auto known = first_ports_.find(guid);
  const std::uint32_t first = known == first_ports_.end() ? next_port_ : known->second;
  std::string reason;
  auto adapter = Adapter::open({*network_, *process_, *services_, *completions_}, guid, first,
                               options_, reason);
  if (!adapter) return network_->log(fmt::format("HCA {:016x}: {}", guid, reason));
  if (known == first_ports_.end()) {
    first_ports_[guid] = first;
    next_port_ += (*adapter)->ports();
  }
  adapters_.push_back(*std::move(adapter));
  report_.on_change();
  adapters_.back()->refresh_all(now());
}

void IpoibDriver::close_adapter(std::uint32_t file) {
  const auto found = std::find_if(adapters_.begin(), adapters_.end(),
                                  [file](const auto& each) { return each->file() == file; });
  if (found == adapters_.end()) return;
  network_->log((*found)->name() + " was removed");
  for (const auto& interface : (*found)->interfaces()) watched_.erase(interface->tap());
  adapters_.erase(found);
  report_.on_change();
}

Status IpoibDriver::run(os::net::NodeNetwork& network, std::string& reason) {
  IB_CHECK(start(network, reason));
  bool idle = false;
  bool goes_on = true;
  while (goes_on && !over_) {
    wait(now(), idle);
    const Instant time = now();
    for_each([time](PortInterface& interface) { interface.begin_turn(time); });
    take_events(time);
    if (ready_.services && !services_->process()) over_ = true;
    idle = serve_interfaces();
    tell_interfaces();
    report_when_settled(time);
    goes_on = !ready_.network || take_network_events();
  }
  if (over_) for_each([](PortInterface& interface) { interface.leave_to_kernel(); });
  adapters_.clear();
  if (!over_) return Status::Ok;
  reason = "softibd is gone";
  return Status::Disconnected;
}

bool IpoibDriver::serve_interfaces() {
  bool idle = true;
  for_each([&idle](PortInterface& interface) {
    if (interface.poll_completions()) idle = false;
    interface.read_frames();
    interface.on_time();
    if (interface.finish_turn()) idle = false;
  });
  return idle;
}

// The set of TAPs to wait for. Those whose buffers are all in use are left alone until some are
// free.
bool IpoibDriver::watch_taps() {
  bool all = true;
  for_each([this, &all](PortInterface& interface) {
    const bool wanted = interface.wants_frames();
    const auto known = watched_.find(interface.tap());
    if (known != watched_.end() && known->second == wanted) return;
    epoll_event event{};
    event.events = wanted ? EPOLLIN : 0u;
    event.data.fd = interface.tap();
    const int how = known == watched_.end() ? EPOLL_CTL_ADD : EPOLL_CTL_MOD;
    if (::epoll_ctl(poll_.get(), how, interface.tap(), &event) != 0) all = false;
    watched_[interface.tap()] = wanted;
  });
  return all;
}

void IpoibDriver::wait(Instant time, bool idle) {
  (void)watch_taps();
  Duration sleep{};
  if (idle) {
    sleep = reported_ready_ ? kLongestSleep : std::min(kLongestSleep, started_ + kPatience - time);
    for_each([&sleep, time](PortInterface& interface) {
      interface.arm();
      const auto deadline = interface.next_deadline();
      if (deadline) sleep = std::min(sleep, *deadline - time);
    });
  }
  // Rounded up: a deadline that is not there yet would only be waited for again.
  constexpr Duration kTick = std::chrono::milliseconds(1);
  const auto ticks = sleep <= Duration{} ? 0 : (sleep + kTick - Duration{1}) / kTick;
  std::array<epoll_event, kMostEvents> ready;
  const int count = ::epoll_wait(poll_.get(), ready.data(), ready.size(), static_cast<int>(ticks));
  ready_ = {};
  for (const epoll_event& event :
       std::span(ready).first(static_cast<std::size_t>(std::max(count, 0)))) {
    const int descriptor = event.data.fd;
    if (descriptor == completions_->fd()) {
      read_completion_events();
    } else if (descriptor == services_->descriptor()) {
      ready_.services = true;
    } else if (descriptor == report_.descriptor()) {
      report_.on_addresses();
    } else if (descriptor == network_->events()) {
      ready_.network = true;
    } else {
      for_each([descriptor](PortInterface& interface) {
        if (interface.tap() == descriptor) interface.on_frames_wait();
      });
    }
  }
}

// One read only: epoll has said that there is something, and a second one would wait.
void IpoibDriver::read_completion_events() {
  std::array<std::uint64_t, 64> queues;
  const ssize_t got = ::read(completions_->fd(), queues.data(), sizeof queues);
  if (got <= 0) {
    over_ = true;  // the other end is closed: softibd is gone
    return;
  }
  const auto count = static_cast<std::size_t>(got) / sizeof queues[0];
  for (const std::uint64_t queue : std::span(queues).first(count)) {
    for_each([queue](PortInterface& interface) { interface.on_completion_event(queue); });
  }
}

void IpoibDriver::take_events(Instant time) {
  using verbs::EventType;
  for (const auto& event : events_.take()) {
    if (event.type == EventType::DeviceFatal) {
      if (event.file == 0) over_ = true;
      close_adapter(event.file);
    } else if (event.type == EventType::CaAdded) {
      open_adapter(event.cookie);
    }
    for (const auto& adapter : adapters_) {
      if (adapter->file() == event.file || event.type == EventType::EventsLost) {
        adapter->on_event(event, time);
        report_.on_change();
      }
    }
  }
}

// Before programs start: they may connect at once.
void IpoibDriver::tell_interfaces() {
  const std::string refusal = report_.tell(*process_, adapters_);
  if (!refusal.empty()) network_->log("softibd does not take an interface: " + refusal);
}

void IpoibDriver::report_when_settled(Instant time) {
  if (reported_ready_) return;
  bool settled = true;
  for_each(
      [&settled](const PortInterface& interface) { settled = settled && interface.is_settled(); });
  if (!settled && time < started_ + kPatience) return;
  reported_ready_ = true;
  network_->report_ready();
}

bool IpoibDriver::take_network_events() {
  for (;;) {
    switch (network_->take_event()) {
      case os::net::NodeEvent::None: return true;
      case os::net::NodeEvent::Stop: return false;
      case os::net::NodeEvent::Report: network_->send_report(report_of(adapters_)); break;
    }
  }
}

}  // namespace ib::ipoib::driver
