// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// ServicesWorld: a fabric of two nodes with its drivers, the access layer and the services, in
// virtual time and on the thread of the test.
#pragma once

#include "base/buffers.h"
#include "drivers/soft_hca/core.h"
#include "drivers/test/driver_world_test.h"
#include "emitted_mads.h"
#include "linux/client/client_host.h"
#include "mad/header.h"
#include "services/gsi/gsi.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace ib::services::test {

// The outcome of an IRP.
struct Outcome {
  io::Irp irp;
  int times = 0;
  io::IrpRef start() {
    return irp.start([](io::Irp&, void* context) { ++static_cast<Outcome*>(context)->times; },
                     this);
  }
  bool is_done() const { return times > 0; }
};

class ServicesWorld {
 public:
  explicit ServicesWorld(verbs::LinkLayer link_layer = verbs::LinkLayer::InfiniBand,
                         drivers::FabricTreeOptions tree_options = {},
                         const std::function<void(fabric::Fabric&)>& before_start = {})
      : bench(0, std::move(tree_options), link_layer, before_start),
        system{bench.executor, os::client_host(), bench.root->device(),
               [this](std::string_view node, std::string_view path, std::string& reason) {
                 return bench.tree->resolve(node, path, reason);
               },
               bench.arena()} {
    Gsi::Options options;
    options.on_send = [this](const GsiAddress&, const mad::Mad& mad) { emitted.add(mad); };
    options.on_drop = [this](std::string line, std::uint32_t) { drops.push_back(std::move(line)); };
    options.element_agents = &bench.core().gmp_agents;
    gsi = std::make_unique<Gsi>(system, bench.fabric, options);
    bench.tree->set_removal_hooks({[this](const fabric::Hca& hca, std::function<void()> go) {
                                     gsi ? gsi->let_go(hca, std::move(go)) : go();
                                   },
                                   [this](const fabric::Hca& hca) {
                                     if (gsi) gsi->let_back(hca);
                                   }});
  }
  ~ServicesWorld() {
    close();
    bool is_down = false;
    bench.tree->shut_down([&] { is_down = true; });
    run(std::chrono::seconds(1));
    EXPECT_TRUE(is_down);
    emitted.expect_no_other_kinds();
  }

  // Lets time pass.
  void run(Duration span = std::chrono::milliseconds(10)) { bench.executor.advance(span); }
  // Whether it comes true within `span`, in steps of a millisecond.
  bool comes(const std::function<bool()>& condition, Duration span = std::chrono::seconds(1)) {
    constexpr Duration kStep = std::chrono::milliseconds(1);
    for (Duration passed{}; passed < span && !condition(); passed += kStep) run(kStep);
    return condition();
  }
  void close() {
    if (gsi == nullptr) return;
    Outcome closed;
    gsi->close(closed.start());
    EXPECT_TRUE(comes([&] { return closed.is_done(); }));
    EXPECT_EQ(closed.irp.status, Status::Ok);
    gsi.reset();
  }
  Status ensure(const char* node, std::string* reason = nullptr) {
    Outcome outcome;
    gsi->ensure(node, outcome.start());
    EXPECT_TRUE(comes([&] { return outcome.is_done(); }));
    if (reason != nullptr) *reason = outcome.irp.reason;
    return outcome.irp.status;
  }
  fabric::Node& node(std::size_t i) { return bench.fabric.nodes()[i]; }
  fabric::Hca& hca(std::size_t i) { return node(i).hcas[0]; }
  fabric::Port& port(std::size_t i) { return hca(i).ports[0]; }
  std::uint32_t index(std::size_t i) { return bench.fabric.graph().index_of(port(i)); }
  // From port 1 of node `from` to that of node `to`: by LID, or by GID where there is no LID.
  GsiAddress address(std::size_t from, std::size_t to, bool by_gid = false) {
    GsiAddress address{index(from), {}};
    address.remote.lid = port(to).lid;
    if (by_gid || port(to).is_ethernet()) {
      address.remote.lid = 0;
      address.remote.route.emplace();
      address.remote.route->gid = port(to).gid();
    }
    return address;
  }
  void power(std::size_t i, io::SystemPower state) {
    bool done = false;
    bench.tree->set_power(&node(i), state, [&](Status status, const std::string& reason) {
      EXPECT_EQ(status, Status::Ok) << reason;
      done = true;
    });
    EXPECT_TRUE(comes([&] { return done; }));
  }
  void set_port(std::size_t i, bool up) {
    drivers::set_port_state(bench.core(), port(i), up);
    run();
  }
  Status remove(std::size_t i, std::string* reason = nullptr) {
    return change(reason, [&](auto done) { bench.tree->remove_hca(node(i), hca(i), done); });
  }
  Status eject(std::size_t i) {
    return change(nullptr, [&](auto done) { bench.tree->eject_hca(node(i), hca(i), done); });
  }
  Status plug_in(std::size_t i) {
    std::string why;
    return change(&why, [&](auto done) {
      const auto added = bench.tree->add_hca(node(i), hca(i).name, why, done);
      if (!added) done(added.error(), why);
    });
  }

  drivers::test::Bench bench;
  al::System system;
  std::unique_ptr<Gsi> gsi;
  EmittedMads emitted;
  std::vector<std::string> drops;  // the lines about them

 private:
  template <class Change>
  Status change(std::string* reason, const Change& begin) {
    bool done = false;
    Status result = Status::Pending;
    begin([&](Status status, const std::string& why) {
      result = status;
      if (reason != nullptr) *reason = why;
      done = true;
    });
    EXPECT_TRUE(comes([&] { return done; }));
    return result;
  }
};

// A whole MAD with this header.
inline mad::Mad mad_of(const mad::MadHeader& header) {
  mad::Mad mad{};
  std::memcpy(mad.data(), &header, sizeof header);
  return mad;
}
inline mad::MadHeader header_of(std::span<const std::byte> mad) {
  mad::MadHeader header;
  std::memcpy(&header, mad.data(), sizeof header);
  return header;
}

}  // namespace ib::services::test
