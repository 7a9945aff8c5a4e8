// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
// The state of a fabric (the JSON text of Code::Status) and the ways to request it.
#pragma once

#include "setup/fabric_shape.h"
#include "softib/pages/control_client.h"

#include <nlohmann/json.hpp>

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ib::softib {

using Json = nlohmann::ordered_json;  // shows keys in softibd's order

// These throw CliError(Daemon).
Json ask_state(ControlClient& client);
// Without nodes, or with one by its name: takes the same time in a fabric of any size.
Json ask_state_without_nodes(ControlClient& client);
Json ask_state_of_node(ControlClient& client, const std::string& node);

std::vector<std::string> node_names(const Json& state);
// The node of this very name, and that of a number; nothing: there is none.
std::optional<std::string> ask_node_named(ControlClient& client, const std::string& name);
std::optional<std::string> ask_node_at(ControlClient& client, std::size_t number);
// The name of the node that the user names (find_node) on that fabric. CliError(NotFound) also.
std::string ask_node(ControlClient& client, const std::string& wanted, const std::string& fabric);
// How many nodes the fabric has; the state need not have them.
std::size_t node_count(const Json& state);
bool is_kept(const Json& state);

// Returns how the running fabric differs from the command line; empty if it does not. It names
// other nodes as far as `state` has them.
std::string shape_difference(const Json& state, const FabricShape& wanted);

// Runs `body`. If it watches a fabric (`watches`), it ends without an error when the fabric goes
// down in order.
void until_down(const std::string& fabric, bool watches, const std::function<void()>& watch);

// Returns a connection to a fabric that is up. Throws CliError(NotUp) with the remedy.
ControlClient connect_up(const std::string& fabric);

// Fields of an object that may lack them.
std::string text_of(const Json& object, const char* key, const std::string& otherwise = "-");
std::uint64_t number_of(const Json& object, const char* key, std::uint64_t otherwise = 0);
const Json& list_of(const Json& object, const char* key);

}  // namespace ib::softib
