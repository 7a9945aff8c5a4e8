// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// For the tests of clients' files: a device whose driver answers, parks or keeps requests as the
// test chooses, and requests that note their end.
#pragma once

#include "io/client_file.h"
#include "io/irp_queue.h"

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace ib::io::test {

class ClientBed {
 public:
  using Trail = std::vector<std::string>;
  enum class Does : std::uint8_t { Answers, Parks, Keeps };

  ClientBed() {
    driver.dispatch.fill(
        [](DeviceObject& at, IrpRef irp) { at.extension<ClientBed>().take(std::move(irp)); });
    device.set_extension(this);
  }
  ClientBed(const ClientBed&) = delete;
  ClientBed& operator=(const ClientBed&) = delete;

  // Answers what the driver keeps.
  void release(Status with = Status::Ok) {
    for (IrpRef& irp : std::exchange(kept, {})) answer(std::move(irp), with);
  }
  static void answer(IrpRef irp, Status with) {
    if (with == Status::Ok) return std::move(irp).complete(with);
    std::move(irp).fail(with, "the test says so");
  }

  Does create = Does::Answers;
  Does control = Does::Parks;
  Does close = Does::Answers;
  Status status = Status::Ok;  // of answers
  Trail trail;                 // what the driver has seen
  IrpQueue parked;
  std::deque<IrpRef> kept;
  Client client;
  DriverObject driver{"driver"};
  DeviceObject device{driver, "device", DeviceKind::Functional};

 private:
  void take(IrpRef irp) {
    const std::string number = " " + std::to_string(irp->file->number());
    const bool creates = irp->major == Major::Create;
    const bool closes = irp->major == Major::Close;
    trail.push_back((creates ? "create" : closes ? "close" : "control") + number);
    switch (creates ? create : closes ? close : control) {
      case Does::Answers: return answer(std::move(irp), status);
      case Does::Parks: return parked.park(std::move(irp));
      case Does::Keeps: return kept.push_back(std::move(irp));
    }
  }
};

// A request of a client: its end is passed on before anything else happens to it.
struct ClientCall {
  IrpRef start() {
    return irp.start(
        [](Irp&, void* context) {
          auto& self = *static_cast<ClientCall*>(context);
          ++self.done;
          if (self.then) self.then(self.irp);
        },
        this);
  }

  Irp irp;
  int done = 0;
  std::function<void(Irp& irp)> then;
};

}  // namespace ib::io::test
