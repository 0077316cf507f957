package transfer

// SealLength is the length of the seal at the end of a backup.
const SealLength = sealLength
