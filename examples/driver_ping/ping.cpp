// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// A kernel client as a third party would write it: a driver for a child of a port, which answers
// pings of its kind over UD and greets all others that it hears of. `softib devices` shows how
// often.
//
// It is a module of its own and uses nothing but headers. The configuration gives each port a child
// with its id, and the driver store has it with a manifest (README.md beside this file).
//
// How the others are found is out of band: all instances are in the same softibd, so they know each
// other by a list in this module.
#include "al/verbs.h"
#include "io/device_node.h"
#include "io/power_manager.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

namespace {

using namespace ib;
namespace control = verbs::control;
using verbs::QpState;

constexpr std::uint32_t kQkey = 0x70696e67;
constexpr std::uint32_t kGrh = 40;  // room before the message in a UD receive
constexpr std::uint32_t kSlot = 128;
constexpr std::uint32_t kReceives = 16;
constexpr std::string_view kPing = "ping";
constexpr std::string_view kPong = "pong";

class Ping;
std::vector<Ping*> all;  // those that are ready; the executor's thread

class Ping final : public io::DeviceObject {
 public:
  Ping(io::DriverObject& driver, const io::DeviceNode& node, al::System& system)
      : DeviceObject(driver, "ping on " + node.path(), io::DeviceKind::Functional),
        where_(node.ids().properties),
        al_(system, driver),
        ca_(al_) {}

  std::string note() const override {
    if (!problem_.empty()) return problem_;
    return std::to_string(pings_) + " pings answered, " + std::to_string(pongs_) +
           " answers to its own";
  }

  // One request after another; the next when the last has succeeded.
  void begin() {
    steps_ = {
        [this](io::IrpRef irp) { al_.open(where_["host"], "ping", std::move(irp)); },
        [this](io::IrpRef irp) {
          ca_.open("\\Device\\ibal\\" + where_["ca_guid"], std::move(irp));
        },
        [this](io::IrpRef irp) {
          ca_.call(control::Code::QueryPort, port_in_, port_, std::move(irp));
        },
        [this](io::IrpRef irp) { al::alloc_pd(ca_, pd_, std::move(irp)); },
        [this](io::IrpRef irp) { al::alloc_dm(ca_, room_, memory_, std::move(irp)); },
        [this](io::IrpRef irp) {
          al::reg_dm(pd_, memory_, verbs::access::kLocalWrite, region_, std::move(irp));
        },
        [this](io::IrpRef irp) { al::create_cq(ca_, 2 * kReceives, cq_, std::move(irp)); },
        [this](io::IrpRef irp) {
          const control::QpCaps caps{kReceives, kReceives, 1, 1, 0, 0};
          al::create_qp(pd_, verbs::QpType::Ud, caps, cq_, cq_, qp_, std::move(irp));
        },
        [this](io::IrpRef irp) { modify(QpState::Init, std::move(irp)); },
        [this](io::IrpRef irp) { modify(QpState::Rtr, std::move(irp)); },
        [this](io::IrpRef irp) { modify(QpState::Rts, std::move(irp)); },
    };
    const std::string& number = where_["port"];
    std::from_chars(number.data(), number.data() + number.size(), port_in_.port);
    next_step();
  }

  // Everything goes with the file on the HCA; then the request, a removal or the end of power, goes
  // on with `then`.
  void end(io::IrpRef request, io::DriverObject::Dispatch then) {
    std::erase(all, this);
    removal_.emplace(std::move(request));
    then_ = then;
    steps_ = {
        [this](io::IrpRef irp) { ca_.close(std::move(irp)); },
        [this](io::IrpRef irp) { al_.close(std::move(irp)); },
    };
    ended_ = 0;
    if (!under_way_) go_on_ending();
  }

 private:
  void next_step() {
    under_way_ = true;
    steps_[at_](irp_.start(&stepped, this));
  }

  static void stepped(io::Irp& irp, void* context) {
    Ping& self = *static_cast<Ping*>(context);
    self.under_way_ = false;
    if (self.removal_) return self.go_on_ending();
    if (irp.status != Status::Ok) {
      self.problem_ = "does not work: " + irp.reason;
      return;
    }
    if (++self.at_ == self.steps_.size()) return self.ready();
    self.next_step();
  }

  void go_on_ending() {
    at_ = ended_++;
    if (at_ < steps_.size()) return next_step();
    at_ = 0;
    io::IrpRef irp = std::move(*removal_);
    removal_.reset();
    then_(*this, std::move(irp));
  }

  void modify(QpState to, io::IrpRef irp) {
    namespace attr = verbs::qp_attr;
    change_ = {};
    change_.state = to;
    change_.port = static_cast<std::uint8_t>(port_in_.port);
    change_.qkey = kQkey;
    std::uint32_t mask = attr::kState;
    if (to == QpState::Init) mask |= attr::kPkeyIndex | attr::kPort | attr::kQkey;
    if (to == QpState::Rts) mask |= attr::kSqPsn;
    al::modify_qp(qp_, mask, change_, std::move(irp));
  }

  void ready() {
    for (std::uint32_t i = 0; i < kReceives; ++i) receive(i);
    cq_.on_completion = [this](al::Cq&) { take(); };
    al::arm(cq_);
    for (const Ping* other : all) send(kPing, other->port_.lid, other->qp_.made.qpn);
    all.push_back(this);
  }

  void receive(std::uint32_t slot) {
    const hca::Sge sge{slot * kSlot, kSlot, region_.made.lkey};
    (void)al::post_recv(qp_, slot, {&sge, 1});
  }

  // There is room for as many messages as receives; one more is not sent, as on a busy wire.
  void send(std::string_view text, std::uint16_t lid, std::uint32_t qpn) {
    const std::uint32_t slot = kReceives + next_send_++ % kReceives;
    std::memcpy(memory_.bytes + slot * kSlot, text.data(), text.size());
    const hca::Sge sge{slot * kSlot, static_cast<std::uint32_t>(text.size()), region_.made.lkey};
    hca::SendWqe wqe;
    wqe.opcode = verbs::WrOpcode::Send;
    wqe.flags = verbs::send_flag::kSignaled;
    wqe.sge = &sge;
    wqe.num_sge = 1;
    wqe.av.dlid = lid;
    wqe.av.port = static_cast<std::uint8_t>(port_in_.port);
    wqe.remote_qpn = qpn;
    wqe.remote_qkey = kQkey;
    (void)al::post_send(qp_, wqe);
  }

  void take() {
    std::array<hca::Completion, 8> got;
    while (const std::size_t n = al::poll(cq_, got)) {
      for (std::size_t i = 0; i < n; ++i) {
        if (got[i].opcode == verbs::WcOpcode::Recv && got[i].status == verbs::WcStatus::Success) {
          answer(got[i]);
        }
      }
    }
    al::arm(cq_);
  }

  void answer(const hca::Completion& got) {
    const auto slot = static_cast<std::uint32_t>(got.wr_id);
    std::array<char, kSlot> bytes;  // once, since the sender can reach it
    std::memcpy(bytes.data(), memory_.bytes + slot * kSlot, kSlot);
    const std::string_view text(bytes.data() + kGrh,
                                std::min(got.byte_len, kSlot) - std::min(got.byte_len, kGrh));
    if (text == kPing) {
      ++pings_;
      send(kPong, got.slid, got.src_qp);
    } else if (text == kPong) {
      ++pongs_;
    }
    receive(slot);
  }

  std::map<std::string, std::string> where_;
  al::Al al_;
  al::Ca ca_;
  io::Irp irp_;
  std::vector<std::function<void(io::IrpRef)>> steps_;
  std::size_t at_ = 0;
  std::size_t ended_ = 0;
  bool under_way_ = false;
  std::optional<io::IrpRef> removal_;
  io::DriverObject::Dispatch then_ = nullptr;
  std::string problem_;

  control::PortIn port_in_;
  control::PortAttr port_;
  control::AllocDmIn room_{2 * kReceives * kSlot, 12, 0};
  control::QpAttr change_;
  al::Pd pd_;
  al::DeviceMemory memory_;
  al::Region region_;
  al::Cq cq_;
  al::Qp qp_;
  std::uint32_t next_send_ = 0;
  std::uint64_t pings_ = 0;
  std::uint64_t pongs_ = 0;
};

// The port is up when those below have started it.
void on_started(io::IrpRef irp, void* context) {
  if (irp->status == Status::Ok) static_cast<Ping*>(context)->begin();
  std::move(irp).pass_up();
}

void on_pnp(io::DeviceObject& device, io::IrpRef irp) {
  auto& self = static_cast<Ping&>(device);
  const auto minor = static_cast<io::PnpMinor>(irp->code);
  if (minor == io::PnpMinor::Start) {
    return io::call_driver(*device.lower(), std::move(irp), &on_started, &self);
  }
  if (minor == io::PnpMinor::Remove || minor == io::PnpMinor::SurpriseRemoval) {
    return self.end(std::move(irp), &io::pass_down);
  }
  io::pass_down(device, std::move(irp));
}

// When softibd goes nobody is asked to remove a device: this is the last that a driver hears.
void on_power(io::DeviceObject& device, io::IrpRef irp) {
  const auto& request = *irp->parameters.get<io::PowerRequest>();
  if (request.is_system && request.system == io::SystemPower::Shutdown) {
    return static_cast<Ping&>(device).end(std::move(irp), &io::follow_system_power);
  }
  io::follow_system_power(device, std::move(irp));
}

Result<std::unique_ptr<io::DeviceObject>> add_device(io::DriverObject& driver, io::DeviceNode& node,
                                                     std::string& reason) {
  auto* system = driver.services.get<al::System>();
  if (system == nullptr || !node.ids().properties.contains("ca_guid")) {
    reason = "ping is for children of a port";
    return Status::NotSupported;
  }
  return std::unique_ptr<io::DeviceObject>(std::make_unique<Ping>(driver, node, *system));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) ib::Status softib_driver_entry_1(
    ib::io::DriverObject& driver, std::string&) {
  driver.add_device = &add_device;
  driver.on(io::Major::Pnp) = &on_pnp;
  driver.on(io::Major::Power) = &on_power;
  return ib::Status::Ok;
}
