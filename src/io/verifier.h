// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Verifier: stands between the senders of requests and the device stacks (`softib up --verify`,
// docs/design/0007). By the dice of a seed it makes requests wait before they are sent, and their
// answers before they are given, so that cancellation, the end of the file and the removal of the
// device meet them at every point; checks the answers of drivers; lists the requests under way.
//
// With `faults` it also lets each request code fail with each of kFaultStatuses once, and each
// place that allocates once per request code.
//
// Thread rule: the executor's thread. Requests that were sent are completed there.
#pragma once

#include "io/device.h"
#include "io/irp_queue.h"
#include "platform/executor.h"

#include <array>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ib::io {

struct VerifierOptions {
  std::uint64_t seed = 1;
  bool faults = false;
  // Returns whether this request may fail: none that destroys may.
  bool (*may_fail)(std::uint32_t code) = nullptr;
  const char* (*code_name)(std::uint32_t code) = nullptr;
  std::function<void(const std::string& line)> report;  // a sentence, without "verify: "
};

class Verifier {
 public:
  // The statuses with which a request is made to fail; DeviceRemoved is not one, as it would be
  // false.
  static constexpr std::array kFaultStatuses{Status::InsufficientResources, Status::DeviceBusy,
                                             Status::IoError, Status::Cancelled,
                                             Status::InvalidState};

  Verifier(platform::Executor& executor, VerifierOptions options);
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;
  ~Verifier();  // nothing is under way

  // In place of call_driver() to the device of the request's file, for the originator.
  void send(IrpRef irp);
  // The same as a device, for originators that give call_driver() a completion routine.
  DeviceObject& device() { return device_; }

  // For a place that allocates: returns whether to fail now. `site` names the place.
  bool fails(std::string_view site);

  // A rule was broken; counts.
  void found(const std::string& what);
  std::uint64_t findings() const { return findings_; }
  // The unanswered requests, in words, for a softibd that cannot end.
  std::vector<std::string> under_way() const;

 private:
  struct Sent {
    Verifier* verifier;
    Irp* irp;
    std::uint32_t code;
    std::list<Sent>::iterator self;
  };

  bool waits() { return random_() % 4 == 0; }
  std::string name_of(const Irp& irp) const;
  bool fail_instead(IrpRef& irp);
  void dispatch(IrpRef irp);
  static void on_completed(IrpRef irp, void* context);
  void look_at(const Irp& irp);
  void answer(Sent& sent, IrpRef irp);

  platform::Executor& executor_;
  VerifierOptions options_;
  DriverObject driver_{"verifier"};
  DeviceObject device_{driver_, "verifier", DeviceKind::Physical};
  std::mt19937_64 random_;
  IrpQueue early_;  // to be sent
  std::list<Sent> sent_;
  std::uint32_t code_ = 0;  // of the request whose dispatch routine runs; 0: none
  std::map<std::uint32_t, std::size_t> failed_;  // kFaultStatuses that a code has had
  std::set<std::uint32_t> passed_;               // codes whose next request may fail
  std::set<std::pair<std::uint32_t, std::string>> sites_;
  std::uint64_t findings_ = 0;
};

}  // namespace ib::io
