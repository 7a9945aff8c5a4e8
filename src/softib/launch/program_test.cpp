// SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#include "softib/launch/program.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

namespace ib::softib {
namespace {

// An ELF file with these parts, each with its content.
struct Part {
  std::uint32_t type;
  std::string content;
};

class ProgramFile {
 public:
  explicit ProgramFile(const std::vector<Part>& parts, unsigned char word_size = ELFCLASS64) {
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = word_size;
    header.e_phoff = sizeof header;
    header.e_phnum = static_cast<Elf64_Half>(parts.size());
    std::string text(reinterpret_cast<const char*>(&header), sizeof header);
    std::size_t at = sizeof header + parts.size() * sizeof(Elf64_Phdr);
    std::string contents;
    for (const Part& part : parts) {
      Elf64_Phdr entry{};
      entry.p_type = part.type;
      entry.p_offset = at + contents.size();
      entry.p_filesz = part.content.size();
      text.append(reinterpret_cast<const char*>(&entry), sizeof entry);
      contents += part.content;
    }
    ::close(::mkstemp(path_.data()));
    std::ofstream(path_, std::ios::binary) << text << contents;
  }
  ProgramFile(const ProgramFile&) = delete;
  ProgramFile& operator=(const ProgramFile&) = delete;
  ~ProgramFile() { ::unlink(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/tmp/softib-program-XXXXXX";
};

std::string note(const std::string& owner, std::uint32_t type, const std::string& description) {
  const std::array<std::uint32_t, 3> head{static_cast<std::uint32_t>(owner.size()),
                                          static_cast<std::uint32_t>(description.size()), type};
  std::string text(reinterpret_cast<const char*>(head.data()), sizeof head);
  for (const std::string& field : {owner, description}) {
    text += field;
    text.append((4 - field.size() % 4) % 4, '\0');
  }
  return text;
}

const Part kLoader{PT_INTERP, "/lib64/ld-linux-x86-64.so.2"};
const std::string kGnuNote = note(std::string("GNU\0", 4), 3, "an identifier");
const std::string kGoNote = note(std::string("Go\0\0", 4), 4, "another/identifier");

TEST(BlindReason, IsNoneForADynamicProgram) {
  EXPECT_EQ(blind_reason(ProgramFile({kLoader, {PT_NOTE, kGnuNote}}).path()), "");
  EXPECT_EQ(blind_reason("/bin/sh"), "");
}

TEST(BlindReason, NamesStaticPrograms) {
  const ProgramFile file({{PT_NOTE, kGnuNote}});
  EXPECT_NE(blind_reason(file.path()).find("statically linked"), std::string::npos);
}

TEST(BlindReason, NamesGoProgramsThatAreDynamic) {
  for (const std::string& notes : {kGoNote, kGnuNote + kGoNote}) {
    const ProgramFile file({kLoader, {PT_NOTE, notes}});
    EXPECT_NE(blind_reason(file.path()).find("Go program"), std::string::npos);
  }
}

TEST(BlindReason, NamesProgramsOfAWordSizeWithoutLibraries) {
  const ProgramFile file({kLoader}, ELFCLASS32);
  EXPECT_NE(blind_reason(file.path()).find("32-bit program"), std::string::npos);
}

TEST(BlindReason, SurvivesDamagedNotes) {
  for (const std::string& notes : {kGoNote.substr(0, 14), std::string(40, '\xff')}) {
    EXPECT_EQ(blind_reason(ProgramFile({kLoader, {PT_NOTE, notes}}).path()), "");
  }
}

TEST(LostEnvironment, NamesTheProgramAndTheOptionThatClearIt) {
  EXPECT_NE(lost_environment({"/usr/bin/env", "-i", "ibv_devinfo"}).find("`env -i`"),
            std::string::npos);
  EXPECT_NE(lost_environment({"env", "-v", "-", "A=1", "ibv_devinfo"}), "");
  EXPECT_NE(lost_environment({"setpriv", "--reuid=1", "--reset-env", "ibv_devinfo"}), "");
}

TEST(LostEnvironment, IsNoneIfTheOptionIsOfAnotherProgram) {
  EXPECT_EQ(lost_environment({"env", "A=1", "grep", "-i", "x"}), "");
  EXPECT_EQ(lost_environment({"grep", "-i", "x"}), "");
  EXPECT_EQ(lost_environment({"setpriv", "--reuid=1", "ibv_devinfo"}), "");
}

}  // namespace
}  // namespace ib::softib
