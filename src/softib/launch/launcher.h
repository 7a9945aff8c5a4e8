// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// Starting softibd. Several commands may want the same fabric at once: they take turns with a lock
// on the runtime directory itself (it leaves no file behind and goes with its holder), and all but
// the first find the daemon running.
#pragma once

#include "setup/fabric_shape.h"
#include "setup/runtime_dir.h"
#include "softib/launch/installation.h"
#include "softib/pages/control_client.h"

#include <string>

namespace ib::softib {

struct LaunchPlan {
  std::string runtime_dir;  // prepared
  std::string fabric;
  FabricShape shape;
  bool keep = false;       // `softib up`
  unsigned idle_exit = 0;  // seconds without a client after which it goes, unless kept
};

struct Launched {
  ControlClient client;
  bool started = false;  // by us
};

// Throws CliError(Daemon | Resources) with the end of the daemon's log if it does not come up.
Launched connect_or_start(const LaunchPlan& plan, const Installation& installation);

// Ends a running fabric that nobody uses or keeps, and starts the wanted one in its place. Returns
// false and changes nothing if it is needed. Throws as connect_or_start().
bool replace_unused(Launched& fabric, const LaunchPlan& plan, const Installation& installation);

// The lock of those who start something for a fabric. Throws CliError(Daemon) if another holds it
// for long.
Fd take_turn(const std::string& runtime_dir);

// Says where programs of the node are going to run: in a network namespace of their own the node
// gets the addresses of its interfaces. Returns why not, in words; empty: it has them.
std::string tell_addresses(ControlClient& client, const std::string& node);

}  // namespace ib::softib
